"""The commands that bring what a training needs: a data set, or weights."""

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_dml.cli.options import options_of
from keras_dml.cli.printing import say


@options_of(
    "keras_dml.data.prepare:prepare",
    without=("progress",),
    names={"name": "DATASET", "download": "--download"},
)
def prepare(
    *,
    data_dir: Annotated[
        Path, typer.Option(metavar="PATH", help="Where it is, or shall be.")
    ],
    **options: Any,
) -> None:
    """Check a data set's files; say what is missing and where to get it."""
    from keras_dml.data.prepare import prepare as check

    found = check(data_dir=data_dir, **options)
    for count, value in found.counts.items():
        say(f"{count.replace('_', ' ')}: {value:,}")
    for archive, state in found.archives.items():
        say(f"{archive}: {state}")
    if found.complete:
        say(f"{found.name} is complete. Train on it with")
        say(f"keras-dml fit {found.name} --data-dir {found.data_dir}")
        return
    say(found.problem)
    for file in found.missing:
        size = f"{file.size:,} bytes" if file.size else "size not published"
        checksum = file.sha256 or file.md5 or "no published checksum"
        say(f"{file.name} ({size}, {checksum})\n  {file.url}")
    for sentence in found.advice:
        say(sentence)
    raise typer.Exit(2)


@options_of(
    "keras_dml.models.conversion.convert:convert_weights",
    names={
        "checkpoint": "FILE",
        "network": "--network",
        "output": "--output",
        "force": "--force",
    },
)
def convert_weights(**options: Any) -> None:
    """Convert a public checkpoint into weights of a backbone."""
    from keras_dml.models.conversion import convert_weights as convert

    result = convert(**options)
    network = options["network"]
    say(f"{result.parameters:,} values of {network}: {result.path}")
    if result.left_out:
        count = len(result.left_out)
        say(f"left out: {count} entries, of the classifier or of training")
    say("Train from them with")
    say(f"keras-dml fit ... --backbone {network} --weights {result.path}")
