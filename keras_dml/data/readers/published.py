"""Registers the readers of published data sets; finds and checks files."""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.data.facts import DatasetFacts, dataset_facts
from keras_dml.data.image_tree import entries_of
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError

MAX_NAMED = 3
READERS: dict[str, Callable[..., Manifest]] = {}


def reader(
    *markers: str, fixed: bool = True
) -> Callable[[Callable], Callable[..., Manifest]]:
    """Registers a function in `READERS` as the reader of a data set.

    The function `read_NAME(root, facts)` gets the folder and the facts of
    `configs/datasets/NAME.yaml`, and returns a `Manifest` of all images that
    the set's list names. The decorated function takes `data_dir`, the folder
    or the one above it, and `allow_partial`, and checks that the set is
    complete.

    Args:
        *markers: Files or folders; the folder must hold at least one of them.
            Give none for a set that needs no folder.
        fixed: Boolean, whether the set must have the counts of its facts.
            Give `False` for one that depends on what is installed. Defaults
            to `True`.

    Example:

    ```python
    @reader("list.txt")
    def read_shoes(root, facts):
        names, labels = read_columns(root / "list.txt", 2)
        return Manifest(facts.name, labels, ...)
    ```
    """

    def register(read: Callable) -> Callable[..., Manifest]:
        name = read.__name__.removeprefix("read_")

        @functools.wraps(read)
        def read_whole(data_dir=None, allow_partial: bool = False) -> Manifest:
            facts = dataset_facts(name)
            root = find_root(data_dir, facts, markers) if markers else None
            try:
                manifest = read(root, facts)
            except UsageError:
                raise
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise UsageError(
                    f"The lists of `{name}` in {root} must be as published. "
                    f"Received: {error!r}. Unpack the archive again."
                ) from error
            if not fixed:
                return manifest
            return complete(manifest, facts, root, allow_partial)

        READERS[name] = read_whole
        return read_whole

    return register


def find_root(
    data_dir: str | os.PathLike | None,
    facts: DatasetFacts,
    markers: Sequence[str],
) -> Path:
    """Returns the folder that holds a data set's list of images.

    Args:
        data_dir: Path, the data set's folder or the one above it.
        facts: `DatasetFacts`, which names the folder.
        markers: Files or folders, relative to the folder, which must hold at
            least one of them.

    Raises:
        UsageError: If no folder holds one of them.
    """
    name = facts.name
    if data_dir is None:
        raise UsageError(
            f"`{name}` is read from a folder. Received: no data folder. Give "
            f"the folder that holds {' or '.join(markers)} as `data_dir`; "
            f"`keras-dml prepare {name}` says where it is published."
        )
    above = Path(data_dir)
    if not above.is_dir():
        raise UsageError(
            "`data_dir` must be a folder. Received: "
            f"data_dir={str(data_dir)!r}, which does not exist."
        )
    for root in (above, *(above / folder for folder in facts.folders)):
        if any((root / marker).exists() for marker in markers):
            return root
    raise UsageError(
        f"`{name}` needs {' or '.join(markers)}. Received: "
        f"data_dir={str(data_dir)!r}, where neither it nor a sub-folder "
        f"{' or '.join(facts.folders)} has one. Run `keras-dml prepare "
        f"{name}` on it to see what is missing."
    )


def first_of(*paths: Path) -> Any:
    """Returns the first path that exists, or `None`."""
    return next((path for path in paths if path.exists()), None)


def exist(paths: Sequence[str]) -> np.ndarray:
    """Returns a Boolean array that marks the files that exist.

    Lists each folder once, because checking 120,000 files one by one takes
    far longer on a network drive.

    Raises:
        UsageError: If a folder may not be read.
    """
    listings: dict[str, set[str]] = {}
    found = np.zeros(len(paths), dtype=bool)
    for row, path in enumerate(paths):
        folder, name = os.path.split(path)
        if folder not in listings:
            place = folder or "."
            entries = entries_of(place) if os.path.isdir(place) else ()
            listings[folder] = {entry.name for entry in entries}
        found[row] = name in listings[folder]
    return found


def complete(
    manifest: Manifest,
    facts: DatasetFacts,
    where: object,
    allow_partial: bool,
) -> Manifest:
    """Raises if a set is incomplete, or keeps the images found.

    Args:
        manifest: `Manifest` of all images that the set's list names.
        facts: `DatasetFacts` with the counts.
        where: The place of the images, for the message.
        allow_partial: Boolean, whether to continue without missing images.

    Returns:
        `Manifest` of the images found; `partial` if some are missing.

    Raises:
        UsageError: If images are missing and `allow_partial` is `False`, or
            none is left.
    """
    counts = count(manifest)
    problems = [
        f"{counts[key]} {key.replace('_', ' ')} listed instead of {number}"
        for key, number in facts.counts.items()
        if counts[key] != number
    ]
    advice = f"Run `keras-dml prepare {facts.name}` on it"
    return keep_found(manifest, where, allow_partial, advice, problems)


def keep_found(
    manifest: Manifest,
    where: object,
    allow_partial: bool,
    advice: str,
    problems: Sequence[str] = (),
) -> Manifest:
    """Raises if images of a list are missing, or keeps the images found.

    Args:
        manifest: `Manifest`.
        where: The place of the images, for the message.
        allow_partial: Boolean, whether to continue without missing images.
        advice: String that says what to do about missing images.
        problems: Sentences on other gaps in the set. Defaults to none.

    Raises:
        UsageError: If images are missing or `problems` are given, and
            `allow_partial` is `False`; or if no image is left.
    """
    found = np.ones(len(manifest), dtype=bool)
    if manifest.paths is not None:
        found = exist(manifest.paths.tolist())
    missing = manifest.ids[~found]
    if len(missing):
        first = (
            f"{len(missing)} of {len(manifest)} images are missing from "
            f"{where}, first: {', '.join(missing[:MAX_NAMED])}"
        )
        problems = [first, *problems]
    if not problems:
        return manifest
    if not found.any():
        raise UsageError(
            f"{manifest.name!r} has no image at all in {where}. Received: "
            f"{len(manifest)} names and no file. {advice}."
        )
    if not allow_partial:
        raise UsageError(
            f"{manifest.name!r} is incomplete: {'; '.join(problems)}. "
            f"{advice}, or go on with what is there: set "
            "`data.allow_partial` to true."
        )
    kept = manifest.select(np.flatnonzero(found))
    return dataclasses.replace(kept, partial=True)


def count(manifest: Manifest) -> dict[str, int]:
    """Counts images and classes in total, per split and per role."""
    counts = {"images": len(manifest), "classes": manifest.num_classes}
    for split in ("train", "test"):
        rows = manifest.split == split
        counts[f"{split}_images"] = int(rows.sum())
        counts[f"{split}_classes"] = len(np.unique(manifest.labels[rows]))
    for role in ("query", "gallery"):
        counts[f"{role}_images"] = int((manifest.role == role).sum())
    return counts


def read_columns(path: Path, columns: int, skip: int = 0) -> list[list[str]]:
    """Splits every line at white space.

    Args:
        path: Path.
        columns: Integer, the number of columns that every line must have.
        skip: Integer, the number of lines to skip. Defaults to `0`.

    Returns:
        One list per column.

    Raises:
        UsageError: If the file is missing or empty, or a line has another
            number of columns.
    """
    if not path.is_file():
        raise UsageError(
            f"{path.name} must be at {path}. Received: no such file. Unpack "
            "the published archive again, with its folders."
        )
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} must list the images, in UTF-8. Received: {error}. Unpack "
            "the published archive again."
        ) from error
    for number, line in enumerate(lines[skip:], start=skip + 1):
        fields = line.split()
        if fields and len(fields) != columns:
            raise UsageError(
                f"Every line of {path} must have {columns} columns. "
                f"Received: line {number}, {line!r}"
            )
        if fields:
            rows.append(fields)
    if not rows:
        raise UsageError(
            f"{path} must list the images. Received: an empty list. Unpack "
            "the published archive again."
        )
    return [list(column) for column in zip(*rows, strict=True)]
