"""What one of several workers does for all: the run folder and the prints."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import console, logging_to
from keras_dml.run.folder import RunFolder


def open_run(
    folder: RunFolder, config: RunConfig, resume: bool
) -> dict[str, Any] | None:
    """The settings of a run that is there already, as the chief finds it."""
    if not distribute.is_chief():
        return None
    folder.check_may_write(resume)
    if not folder.exists:
        return None
    if not folder.finished:
        folder.lock()
    folder.check_config(config)
    return folder.load_config().model_dump(mode="json")


def create_run(folder: RunFolder, config: RunConfig, resume: bool) -> None:
    """Makes the folder of a run, where this is the chief."""
    if distribute.is_chief():
        if not resume:
            # Another process may have been faster.
            folder.check_may_write(resume)
        folder.lock()
        folder.create(config)


def logging_on_chief(path: Path | None = None) -> AbstractContextManager[None]:
    """Log lines on the chief; of the others only warnings are seen."""
    if distribute.is_chief():
        return logging_to(path)
    return contextlib.nullcontext()


@contextlib.contextmanager
def quiet_unless_chief() -> Iterator[None]:
    """Of several workers, one shows how the training gets on."""
    quiet = console.quiet
    console.quiet = quiet or not distribute.is_chief()
    try:
        yield
    finally:
        console.quiet = quiet
