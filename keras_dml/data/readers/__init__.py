"""Reads data sets: each reader returns a `Manifest` with the papers' split."""

import difflib
import importlib
import os
import pkgutil
from pathlib import Path

from keras_dml.data.image_tree import warn_once
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.csv_file import read_csv
from keras_dml.data.readers.folder import read_folder
from keras_dml.data.readers.published import READERS
from keras_dml.data.readers.tfds_adapter import (  # noqa: F401
    load_builder,
    read_tfds,
)
from keras_dml.errors import UsageError

# Importing a module registers its `@reader` in `READERS`.
for _module in pkgutil.iter_modules([os.path.dirname(__file__)]):
    importlib.import_module(f"{__name__}.{_module.name}")


# Values of the weights setting, which a folder may also have as its name.
WEIGHTS = ("auto", "imagenet", "none", "preset")


def is_named(source: str) -> bool:
    """Returns whether a source names a data set instead of a path."""
    return source in READERS or os.fspath(source).startswith("tfds:")


def source_name(source: str) -> str:
    """Returns the name of a source in tables: for a path, its last part."""
    if is_named(source):
        return source
    # A path such as `.` has no name, but its place has one.
    return Path(os.path.abspath(source)).name


def whole_path(place: str | None) -> str | None:
    """Returns an existing path as an absolute one, and other values as is."""
    return place and _absolute(place)


def whole_source(source: str) -> str:
    """Does `whole_path`, but for the name of a data set."""
    return source if is_named(source) else _absolute(source)


def whole_weights(weights: str) -> str:
    """Does `whole_path`, but for a word that stands for weights."""
    return weights if weights in WEIGHTS else _absolute(weights)


def _absolute(place: str) -> str:
    return os.path.abspath(place) if place and os.path.exists(place) else place


def read(
    source, data_dir=None, allow_partial: bool = False, download: bool = True
) -> Manifest:
    """Reads a data set.

    Args:
        source: Name of a data set in `READERS`, `tfds:NAME`, a folder with
            one sub-folder per class, or a CSV file `path,label[,split]`.
        data_dir: Path of the folder that holds a named data set. Defaults
            to `None`.
        allow_partial: Boolean, whether to continue if images are missing.
            Defaults to `False`.
        download: Boolean, whether to download missing records of
            tensorflow-datasets. Defaults to `True`.

    Returns:
        `Manifest`.

    Raises:
        UsageError: If the source is unknown or incomplete.

    Example:

    >>> read("digits").class_names
    ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')
    """
    name = str(source)
    if name in READERS:
        if data_dir is None and os.path.isdir(name):
            warn_once(
                f"`{name}` is the data set of that name, and the folder here "
                f"is not read. Write `./{name}` for the folder."
            )
        return READERS[name](data_dir, allow_partial)
    if name.startswith("tfds:"):
        name = name.removeprefix("tfds:")
        return read_tfds(name, data_dir, allow_partial, download)
    # Unlike those of `Path`, these take names of any length.
    if os.path.isdir(name):
        return read_folder(name, allow_partial)
    if os.path.isfile(name) or name.lower().endswith(".csv"):
        return read_csv(name, allow_partial)
    near = difflib.get_close_matches(name, READERS, n=3, cutoff=0.4)
    raise UsageError(
        f"{name!r} is no known data set"
        + (f"; did you mean {' or '.join(near)}?" if near else ".")
        + " A source is one of "
        + ", ".join(READERS)
        + ", a folder with one sub-folder per class, a CSV file "
        "(path,label[,split]) or tfds:NAME. Received: no such folder or file."
    )
