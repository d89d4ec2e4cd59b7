"""`keras-dml prepare`."""

from pathlib import Path
from typing import Annotated

import typer

from keras_dml.cli.printing import say


def prepare(
    dataset: Annotated[str, typer.Argument(help="See `keras-dml datasets`.")],
    data_dir: Annotated[Path, typer.Option(help="Where it is, or shall be.")],
    download: Annotated[
        bool, typer.Option("--download", help="Through tensorflow-datasets.")
    ] = False,
) -> None:
    """Check a data set's files; say what is missing and where to get it."""
    from keras_dml.data.prepare import prepare as check

    report = check(dataset, data_dir, download=download)
    for count, value in report.counts.items():
        say(f"{count.replace('_', ' ')}: {value:,}")
    for archive, state in report.archives.items():
        say(f"{archive}: {state}")
    if report.complete:
        say(f"{report.name} is complete. Train on it with")
        say(f"keras-dml fit {report.name} --data-dir {data_dir}")
        return
    say(report.problem)
    for file in report.missing:
        size = f"{file.size:,} bytes" if file.size else "size not published"
        checksum = file.sha256 or file.md5 or "no published checksum"
        say(f"{file.name} ({size}, {checksum})\n  {file.url}")
    for sentence in report.advice:
        say(sentence)
    raise typer.Exit(2)
