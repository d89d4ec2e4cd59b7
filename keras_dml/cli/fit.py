"""`keras-dml fit`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import DataDir, Source
from keras_dml.printing import print_gain, say


def fit(
    source: Source,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="NAME or FILE.yaml, with :PRESET or :PRESET+PRESET if wanted."
        ),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="See `keras-dml backbones`.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="imagenet, none, or a file.")
    ] = None,
    data_dir: DataDir = None,
    output_folder: Annotated[
        Path | None,
        typer.Option(
            "--output", help="Run folder [default: runs/SOURCE-RECIPE-SEED]."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    strategy: Annotated[
        str, typer.Option(help="auto, none, mirrored or multi_worker.")
    ] = "auto",
    devices: Annotated[
        str | None, typer.Option(help="For trying a strategy, e.g. cpu:2.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting: key=value, dotted key."),
    ] = None,
) -> None:
    """Train an embedder, measure it on unseen classes, export it."""
    from keras_dml.config import DEFAULT_RECIPE, resolve

    recipe = recipe or DEFAULT_RECIPE
    model = {"backbone": backbone, "weights": weights}
    config = resolve(
        recipe,
        source,
        flags={
            "seed": seed,
            "strategy": strategy,
            "devices": devices,
            "data": {"data_dir": str(data_dir) if data_dir else None},
            "model": {key: value for key, value in model.items() if value},
        },
        overrides=settings or [],
    )
    folder = output_folder or _default_output(source, recipe, seed)

    from keras_dml import train

    metrics = train.fit(config, folder, resume=resume)
    print_gain(metrics)
    say(f"Run folder: {folder}")


def _default_output(source: str, recipe: str, seed: int) -> Path:
    """`runs/<source>-<recipe>-<seed>`, with names that a path may hold."""
    place = Path(source)
    name = place.stem if place.exists() else source
    label = Path(recipe.removesuffix(".yaml")).name
    plain = f"{name}-{label}-{seed}".replace(":", "_").replace("+", "_")
    return Path("runs") / plain.replace("/", "_")
