"""`keras-dml fit`."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from keras_dml.cli.options import DataDir, Source
from keras_dml.cli.printing import print_gain, say
from keras_dml.console import logging_to

if TYPE_CHECKING:
    from keras_dml.distribute import PeerLostError, PreemptedError


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
        str | None, typer.Option(help="imagenet, preset, none, or a file.")
    ] = None,
    data_dir: DataDir = None,
    output_folder: Annotated[
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
    seed: Annotated[int, typer.Option(min=0)] = 0,
    strategy: Annotated[
        str, typer.Option(help="auto, none, mirrored or multi_worker.")
    ] = "auto",
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

    from keras_dml.distribute import (
        PeerLostError,
        PreemptedError,
        is_chief,
        num_workers,
    )
    from keras_dml.export import exporter
    from keras_dml.run import fit as train

    try:
        metrics = train.fit(
            config,
            folder,
            resume=resume,
            peer_timeout=peer_timeout,
            export=exporter() if export else None,
        )
    except (PeerLostError, PreemptedError) as error:
        _leave(error)
    if is_chief():
        print_gain(metrics)
        # The report embeds images, which all workers would have to do.
        if report and num_workers() == 1:
            _write_report(folder)
        say(f"Run folder: {folder}")


def _write_report(folder: Path) -> None:
    """Writes the page of a run that has none."""
    from keras_dml.report import write_report
    from keras_dml.report.write import FILE

    if not (folder / FILE).is_file():
        with logging_to():
            write_report(folder)


def _leave(error: "PeerLostError | PreemptedError") -> NoReturn:
    """Exits with the code that asks a supervisor to start the run again.

    At once: TensorFlow may wait for workers that are gone.
    """
    print(f"Error: {error}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    logging.shutdown()
    os._exit(error.exit_code)


def _default_output(source: str, recipe: str, seed: int) -> Path:
    """`runs/<source>-<recipe>-<seed>`, with names that a path may hold."""
    place = Path(source)
    name = place.stem if place.exists() else source
    label = Path(recipe.removesuffix(".yaml")).name
    plain = f"{name}-{label}-{seed}".replace(":", "_").replace("+", "_")
    return Path("runs") / plain.replace("/", "_")
