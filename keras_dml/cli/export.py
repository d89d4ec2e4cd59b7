"""`keras-dml export`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.options import DataDir, Run
from keras_dml.printing import print_rows


def export(
    run: Run,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="saved_model, litert or onnx [default: the first two].",
        ),
    ] = None,
    quantize: Annotated[
        list[str] | None,
        typer.Option(
            help="Of LiteRT: none, float16, dynamic_range or int8 [default: "
            "none]."
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
    from keras_dml.run.exporting import export_run

    rows = export_run(
        run,
        formats or ["saved_model", "litert"],
        quantize=quantize or ["none"],
        max_drop=max_drop,
        output=output_folder,
        data_dir=data_dir,
        force=force,
    )
    print_rows("Exported", rows)
