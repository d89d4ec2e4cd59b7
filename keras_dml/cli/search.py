"""`keras-dml search`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import DataDir, IndexKind, Json, RunPath
from keras_dml.cli.printing import print_answers, say
from keras_dml.console import logging_to


def search(
    run: RunPath,
    images: Annotated[
        list[Path], typer.Argument(help="Image files to look up.")
    ],
    k: Annotated[
        int, typer.Option(min=1, help="How many neighbors to find.")
    ] = 10,
    gallery: Annotated[
        str | None,
        typer.Option(
            help="Search all images of this source instead of the run's test "
            "images."
        ),
    ] = None,
    data_dir: DataDir = None,
    index: IndexKind = "exact",
    max_false_match_rate: Annotated[
        float | None,
        typer.Option(
            help="Answer `none` beyond the threshold at which so many "
            "decisions on validation classes are wrong.",
            show_default="0.001",
        ),
    ] = None,
    decision: Annotated[
        str,
        typer.Option(
            help="What the rate is a share of: pairs of images, or searches "
            "(nearest)."
        ),
    ] = "pairs",
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the answers, as a PNG file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the images nearest to others, or none if none is near enough."""
    if picture is not None:
        from keras_dml.search.picture import check_picture

        check_picture(picture)
    from keras_dml.api import Run

    with logging_to():
        result = Run(run).search(
            images,
            k=k,
            gallery=gallery,
            data_dir=data_dir,
            index=index,
            max_false_match_rate=max_false_match_rate,
            decision=decision,
        )
    if picture is not None:
        from keras_dml.search.picture import draw_answers

        draw_answers(result, picture)
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    print_answers(result)
    if picture is not None:
        say(f"Picture: {picture}")
