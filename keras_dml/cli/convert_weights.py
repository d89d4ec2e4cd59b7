"""`keras-dml convert-weights`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.printing import say


def convert_weights(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A public checkpoint: .pth, .safetensors or .npz of PyTorch, "
            "or .ckpt of TensorFlow.",
        ),
    ],
    network: Annotated[
        str,
        typer.Option(
            help="bn_inception, googlenet, inception_v1 or resnet50_v1_5."
        ),
    ],
    output: Annotated[
        Path, typer.Option(help="The file to write, NAME.weights.h5.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file.")
    ] = False,
) -> None:
    """Convert a public checkpoint into weights of a backbone."""
    from keras_dml.models.conversion import convert_weights as convert

    result = convert(checkpoint, network, output, force=force)
    say(f"{result.parameters:,} values of {network}: {result.path}")
    if result.left_out:
        count = len(result.left_out)
        say(f"left out: {count} entries, of the classifier or of training")
    say("Train from them with")
    say(f"keras-dml fit ... --backbone {network} --weights {result.path}")
