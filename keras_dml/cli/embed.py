"""`keras-dml embed`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import DataDir, Json, RunPath
from keras_dml.cli.printing import say
from keras_dml.console import logging_to
from keras_dml.errors import RunError


def embed(
    run: RunPath,
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of images, with one sub-folder per class or "
            "without; a CSV file (path[,label]); a data set's name, or "
            "tfds:NAME."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            help="A folder for shards, or one FILE.npz or FILE.parquet.",
            show_default=False,
        ),
    ],
    data_dir: DataDir = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="npz or parquet; as --output ends, else npz.",
        ),
    ] = None,
    shard_size: Annotated[
        int, typer.Option(min=1, help="Images of a shard.")
    ] = 10_000,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Images embedded at once; else as in `evaluate`."
        ),
    ] = None,
    max_pixels: Annotated[
        int | None,
        typer.Option(min=1, help="Larger images are bad ones; else 89478485."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what is there.")
    ] = False,
    fail_on_bad: Annotated[
        bool,
        typer.Option(
            "--fail-on-bad", help="Exit with 1 if an image cannot be read."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Embed all images of a folder, with their ids, into files."""
    from keras_dml.api import Run

    # The module that defines its default imports TensorFlow.
    more = {} if max_pixels is None else {"max_pixels": max_pixels}

    with logging_to():
        done = Run(run).embed(
            source,
            output,
            data_dir=data_dir,
            file_format=file_format,
            shard_size=shard_size,
            batch_size=batch_size,
            resume=resume,
            **more,
        )
    if as_json:
        print(json.dumps(dataclasses.asdict(done)))
    else:
        rate = ""
        if done.seconds:
            rate = f" ({done.images_per_second:,.0f} images/s)"
        say(
            f"Embedded {done.rows:,} of {done.images:,} images{rate}, "
            f"{done.dim} numbers each: {done.output}"
        )
        if done.bad:
            say(f"Skipped {done.bad:,} images, listed in {done.bad_list}")
    if fail_on_bad and done.bad:
        raise RunError(
            f"{done.bad} of {done.images} images cannot be read; "
            f"{done.bad_list} names them and says why."
        )
