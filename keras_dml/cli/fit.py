"""`keras-dml fit`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import (
    SOURCE,
    Backbone,
    DataDir,
    Recipe,
    Settings,
    Weights,
)
from keras_dml.cli.printing import print_gain, say


def fit(
    source: Annotated[
        str | None, typer.Argument(help=SOURCE, show_default=False)
    ] = None,
    recipe: Recipe = None,
    backbone: Backbone = None,
    weights: Weights = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Train the run of this config.yaml again; from SOURCE, if "
            "its images were moved."
        ),
    ] = None,
    data_dir: DataDir = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Run folder.",
            show_default="runs/SOURCE-RECIPE-SEED",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, show_default="0")] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="auto, none, mirrored or multi_worker.", show_default="auto"
        ),
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="For trying a strategy, e.g. cpu:2.")
    ] = None,
    peer_timeout: Annotated[
        float,
        typer.Option(min=1, help="Seconds to wait for a silent worker."),
    ] = 120.0,
    export: Annotated[
        bool,
        typer.Option(help="Whether to write RUN/export/, compared."),
    ] = True,
    report: Annotated[
        bool, typer.Option(help="Whether to write RUN/report.html.")
    ] = True,
    settings: Settings = None,
) -> None:
    """Train an embedder, measure it on unseen classes, export it."""
    from keras_dml import api, distribute

    run = api.fit(
        source,
        recipe=recipe,
        backbone=backbone,
        weights=weights,
        config=config,
        settings=settings or [],
        seed=seed,
        output=output,
        resume=resume,
        report=report,
        export=export,
        data_dir=data_dir,
        strategy=strategy,
        devices=devices,
        peer_timeout=peer_timeout,
    )
    if distribute.is_chief():
        print_gain(run.metrics)
        say(f"Run folder: {run.folder.path}")
