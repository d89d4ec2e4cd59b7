"""`keras-dml export`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import DataDir, RunPath
from keras_dml.cli.printing import print_artefacts


def export(
    run: RunPath,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="saved_model, litert or onnx.",
            show_default="the first two",
        ),
    ] = None,
    quantize: Annotated[
        list[str] | None,
        typer.Option(
            help="Of LiteRT: none, float16, dynamic_range or int8.",
            show_default="none",
        ),
    ] = None,
    dynamic_batch: Annotated[
        bool,
        typer.Option(
            "--dynamic-batch", help="LiteRT takes any number of images."
        ),
    ] = False,
    references: Annotated[
        bool,
        typer.Option(
            "--with-references",
            "--with-gallery",
            help="Write test references next to the LiteRT file, for "
            "search on the device.",
        ),
    ] = False,
    with_index: Annotated[
        bool,
        typer.Option(
            "--with-index",
            help="Endpoints of the SavedModel that search references.",
        ),
    ] = False,
    index: Annotated[
        str,
        typer.Option(
            help="auto, exact or scann; auto is exact below 20,000 references."
        ),
    ] = "auto",
    gallery: Annotated[
        str | None,
        typer.Option(
            help="What the index holds: a source, or embeddings (.npz, "
            ".parquet, folder of `embed`).",
            show_default="the test references",
        ),
    ] = None,
    max_k: Annotated[
        int,
        typer.Option(help="The most neighbors that a request may ask for."),
    ] = 100,
    max_pixels: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The largest image file that the SavedModel decodes.",
            show_default="89,478,485",
        ),
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(
            min=0, help="Reject what loses more R@1 or MAP@R, such as 0.01."
        ),
    ] = None,
    output_folder: Annotated[
        Path | None, typer.Option("--output", help="Default: RUN/export.")
    ] = None,
    data_dir: DataDir = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is not an export.")
    ] = False,
) -> None:
    """Export a trained embedder and compare it with the original."""
    from keras_dml.data.decoding import MAX_PIXELS
    from keras_dml.export import DEFAULT_FORMATS, ExportOptions, export_run

    result = export_run(
        run,
        formats or DEFAULT_FORMATS,
        ExportOptions(
            quantize=quantize or ["none"],
            dynamic_batch=dynamic_batch,
            references=references,
            with_index=with_index,
            index=index,
            gallery=gallery,
            max_k=max_k,
            max_pixels=max_pixels or MAX_PIXELS,
            max_drop=max_drop,
            force=force,
        ),
        output=output_folder,
        data_dir=data_dir,
    )
    print_artefacts(result)
