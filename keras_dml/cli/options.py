"""Defines the arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.errors import UsageError

SOURCE = (
    "A data set's name, a folder with one sub-folder per class, a CSV file "
    "(path,label[,split]), or tfds:NAME."
)
RunPath = Annotated[Path, typer.Argument(help="The run folder.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        help="NAME or FILE.yaml, with :PRESET or :PRESET+PRESET if wanted."
    ),
]
Backbone = Annotated[
    str | None, typer.Option(help="See `keras-dml backbones`.")
]
Weights = Annotated[
    str | None, typer.Option(help="imagenet, preset, none, or a file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any setting: key=value, such as stages.main.train.epochs=20.",
    ),
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder that holds the data set's files.")
]
IndexKind = Annotated[
    str, typer.Option("--index", help="exact, or scann (approximate).")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


def parse_ranks(text: str) -> list[int]:
    """Reads the integers of `--k`.

    Raises:
        UsageError: If they are not positive integers joined by commas.
    """
    ranks = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) > 0 for part in ranks):
        raise UsageError(
            "`--k` must be positive integers joined by commas, such as "
            f"1,2,4,8. Received: {text!r}"
        )
    return [int(part) for part in ranks]
