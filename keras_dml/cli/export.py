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
        typer.Option("--format", help="saved_model or litert [default: both]."),
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
    from keras_dml import train

    rows = train.export_run(
        run,
        formats or ["saved_model", "litert"],
        output=output_folder,
        data_dir=data_dir,
        force=force,
    )
    print_rows("Exported", rows)
