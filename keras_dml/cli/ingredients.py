"""The commands that bring what a training needs: a data set, or weights."""

from typing import Any

from keras_dml.cli.next_steps import command_line
from keras_dml.cli.options import options_of
from keras_dml.cli.printing import say
from keras_dml.console import logger, showing_log
from keras_dml.errors import UsageError


@options_of(
    "keras_dml.data.prepare:prepare",
    without=("progress",),
    names={
        "name": "DATASET",
        "data_dir": "--data-dir",
        "download": "--download",
    },
)
def prepare(**options: Any) -> None:
    """Check a data set's files; say what is missing and where to get it."""
    from keras_dml.data.prepare import prepare as check

    with showing_log():
        found = check(progress=logger.info, **options)
    for count, value in found.counts.items():
        say(f"{count.replace('_', ' ')}: {value:,}")
    for archive, state in found.archives.items():
        say(f"{archive}: {state}")
    if not found.complete:
        for file in found.missing:
            size = f"{file.size:,} bytes" if file.size else "size not published"
            checksum = file.sha256 or file.md5 or "no published checksum"
            say(f"{file.name} ({size}, {checksum})\n  {file.url}")
        raise UsageError(" ".join([found.problem, *found.advice]))
    say(f"{found.name} is complete. Train on it with")
    place = ["--data-dir", found.data_dir] if found.data_dir else []
    say(command_line("keras-dml", "fit", found.name, *place))


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
    train = ["--backbone", network, "--weights", result.path]
    say(command_line("keras-dml", "fit", "PHOTOS", *train))
