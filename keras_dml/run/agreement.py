"""Checks that workers agree, and lets the chief write for all of them."""

import contextlib
import importlib.metadata
import logging
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import console, keeping_log, showing_log
from keras_dml.data import readers
from keras_dml.distribute.workers import worker_name
from keras_dml.errors import UsageError
from keras_dml.naming import flatten
from keras_dml.run.data import RunData
from keras_dml.run.folder import RunFolder

LIBRARIES = ("keras-dml", "keras", "tensorflow", "numpy")
NAMED = 4


def check_same_settings(config: RunConfig) -> None:
    """Raises if a worker's settings or libraries differ from the chief's.

    The folder of the data may differ.

    Raises:
        UsageError: On every worker, if they differ; names the differences.
    """
    if distribute.num_workers() == 1:
        return
    settings = config.model_dump(mode="json", exclude={"data": {"data_dir"}})
    settings["data"]["source"] = readers.source_name(config.data.source)
    record = {f"`{key}`": value for key, value in flatten(settings).items()}
    for name in LIBRARIES:
        record[f"the version of {name}"] = importlib.metadata.version(name)
    record["the version of Python"] = platform.python_version()
    _compare(record)


def with_own_paths(chiefs: Mapping[str, Any], own: RunConfig) -> RunConfig:
    """Returns the chief's settings, with this worker's paths of the images.

    Args:
        chiefs: The settings of the chief's run, as plain values.
        own: The settings that this worker was given.
    """
    config = RunConfig.model_validate(chiefs)
    if distribute.is_chief():
        return config
    paths = {"source": own.data.source, "data_dir": own.data.data_dir}
    return config.changed(data=paths)


def check_same_data(data: RunData) -> None:
    """Raises if a worker's images differ from the chief's.

    Compares names, labels and number of the images.

    Raises:
        UsageError: On every worker, if they differ; names the differences.
    """
    record: dict[str, Any] = {}
    for name, part in (("training", data.train), ("test", data.test)):
        record[f"the number of {name} images"] = len(part)
        record[f"the number of {name} classes"] = part.num_classes
        record[f"the checksum of the {name} images"] = part.checksum()[:12]
    _compare(record)


def _compare(record: dict[str, Any]) -> None:
    if distribute.num_workers() == 1:
        return
    chief, *others = distribute.gather(record)
    differences = []
    for index, other in enumerate(others, start=1):
        for key in sorted(chief.keys() | other.keys()):
            if chief.get(key) != other.get(key):
                differences.append(
                    f"{key} is {chief.get(key)!r} on the chief and "
                    f"{other.get(key)!r} on {worker_name(index)}"
                )
    if differences:
        more = len(differences) - NAMED
        rest = f"; and {more} more" if more > 0 else ""
        raise UsageError(
            "The workers differ: "
            f"{'; '.join(differences[:NAMED])}{rest}. Give all of them the "
            "same command, libraries and data."
        )


def open_run(
    folder: RunFolder, config: RunConfig, resume: bool
) -> dict[str, Any] | None:
    """Returns the settings of an existing run on the chief, or `None`.

    A run that ended before its first epoch is begun again, unless `resume`.

    Raises if the run must not be written or continued with `config`.
    """
    if not distribute.is_chief():
        return None
    folder.check_may_write(resume)
    if not folder.exists:
        return None
    if not folder.finished:
        folder.lock()
    if not resume:
        return None
    folder.check_config(config)
    return folder.load_config().model_dump(mode="json")


def create_run(folder: RunFolder, config: RunConfig, resume: bool) -> None:
    """Makes the folder of a run, on the chief."""
    if distribute.is_chief():
        if not resume:
            # Another process may have made the folder meanwhile.
            folder.check_may_write(resume)
        folder.lock()
        folder.create(config)


def showing_log_on_chief(
    level: int = logging.INFO,
) -> AbstractContextManager[None]:
    """Shows log lines on the chief, and only warnings elsewhere.

    Args:
        level: See `showing_log`. Defaults to `logging.INFO`.
    """
    if distribute.is_chief():
        return showing_log(level)
    return contextlib.nullcontext()


def keeping_log_on_chief() -> AbstractContextManager[Callable[[Path], None]]:
    """Keeps log lines for a file that the chief writes."""
    if distribute.is_chief():
        return keeping_log()
    return contextlib.nullcontext(lambda path: None)


@contextlib.contextmanager
def quiet_unless_chief() -> Iterator[None]:
    """Shows progress on the chief only."""
    quiet = console.quiet
    console.quiet = quiet or not distribute.is_chief()
    try:
        yield
    finally:
        console.quiet = quiet
