"""Reads a CSV file with the columns path, label and maybe split and group."""

import csv
import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.data import splits
from keras_dml.data.image_tree import composed, warn_once
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import keep_found
from keras_dml.embeddings.embedding_set import SEPARATOR
from keras_dml.errors import UsageError

# Python converts no number of more than 4,300 digits.
LONGEST_NUMBER = 100


@dataclasses.dataclass(frozen=True)
class Listed:
    """What a CSV file says of an image.

    Attributes:
        labels: Its labels; none if it has no label.
        split: The cell of that column; `None` if the file has no such column.
        group: The cell of that column; empty if there is none.
        line: The number of its last line.
    """

    labels: tuple[str, ...]
    split: str | None
    group: str
    line: int


def read_csv(path, allow_partial: bool = False) -> Manifest:
    """Reads `path,label[,split][,group]`; paths are relative to the file.

    `split` is train or test. Without it the first half of the classes that
    have an image trains. `group` is a coarser class. Labels are sorted, as
    numbers if all of them are whole numbers without a sign. An image may have
    several, see `listed_images`.

    Args:
        path: Path of the file.
        allow_partial: Boolean, whether to continue if images are missing.
            Defaults to `False`.

    Returns:
        `Manifest` of the images found; `seen` if a class is in both splits.

    Raises:
        UsageError: If the file, a column, a value or an image is missing.
    """
    path = Path(path)
    images = listed_images(path, "path", "label")
    for one in images.values():
        if one.split not in (None, "train", "test"):
            raise UsageError(
                f"The split on line {one.line} of {path} must be train or "
                f"test. Received: {one.split!r}"
            )
    own = [one.labels for one in images.values()]
    class_names = sorted_labels(set().union(*own))
    listed = Manifest(
        name=path.stem,
        labels=_numbered(own, class_names),
        class_names=class_names,
        ids=list(images),
        paths=[str(path.parent / name) for name in images],
        split=[one.split or "" for one in images.values()],
        group=_groups(path, [one.group for one in images.values()]),
    )
    advice = f"Correct the paths, which are relative to {path.parent}"
    found = keep_found(listed, path, allow_partial, advice)
    if all(one.split is None for one in images.values()):
        split = splits.class_disjoint(found.labels)
        return dataclasses.replace(found, split=split)
    train, test = (
        {*found.select(found.split == name).label_sets.values.tolist()}
        for name in ("train", "test")
    )
    both = [found.class_names[one] for one in sorted(train & test)]
    if both and len(both) < len(test):
        warn_once(
            f"{len(both)} of the {len(test)} test classes of {path} train as "
            f"well, such as {both[0]!r}, so the test is one of seen classes. "
            "Give each class to one `split` to measure new classes."
        )
    return dataclasses.replace(found, seen=bool(both))


def listed_images(path: Path, *needed: str) -> dict[str, Listed]:
    """Reads the images of a CSV file, with their labels if it has any.

    An image has several labels if its cell is `a|b`, if the file has several
    columns `label`, or if several lines name its path.

    Args:
        path: Path of the file.
        *needed: Columns that the file must have, with a value in each line.

    Returns:
        Dict of each path to its `Listed`, in the order of the file.

    Raises:
        UsageError: If the file cannot be read, a column or a value is
            missing, a label is empty, or lines of one image contradict or
            repeat each other, or spell its path differently.
    """
    found: dict[str, Listed] = {}
    spelled: dict[str, str] = {}
    folder = os.path.abspath(path.parent)
    for number, row in iterate_table(path, *needed):
        name, split = row["path"], None
        group = composed(row.get("group") or "")
        if "split" in row:
            split = (row["split"] or "").lower()
        labels = _labels(row.get("label"), f"on line {number} of {path}")
        place = os.path.normpath(os.path.join(folder, name))
        if spelled.setdefault(place, name) != name:
            raise UsageError(
                f"Every image of {path} must have one spelling of its path. "
                f"Received: {spelled[place]!r} and, on line {number}, "
                f"{name!r}. Write both the same."
            )
        earlier = found.get(name, Listed((), split, group, number))
        if name in found and not set(labels) - set(earlier.labels):
            raise UsageError(
                f"Every path of {path} must be listed once, or once with each "
                f"of its labels. Received: {name!r} again on line {number}, "
                "without another label."
            )
        for before, now in ((earlier.split, split), (earlier.group, group)):
            if before != now:
                raise UsageError(
                    f"Every image of {path} must have one split and one "
                    f"group. Received: {name!r} with {before!r} and, on line "
                    f"{number}, with {now!r}."
                )
        every = dict.fromkeys((*earlier.labels, *labels))
        found[name] = Listed(tuple(every), split, group, number)
    return found


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """Sorts the names of classes, as numbers if all are digits alone.

    `1` and `01` are two classes, whose order is the same in every process.

    >>> sorted_labels({"10", "9", "09"})
    ['09', '9', '10']
    """
    names = sorted(labels)
    if all(name.isdecimal() and len(name) <= LONGEST_NUMBER for name in names):
        names.sort(key=int)
    return names


def iterate_table(
    path: Path, *needed: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the lines of a CSV file with their numbers, as dictionaries.

    Spaces around a cell do not count. The cells of several columns `label` are
    joined by `|`.

    Args:
        path: Path of the file.
        *needed: Columns that the file must have, with a value in each line.

    Raises:
        UsageError: If the file cannot be read or has no line, a column or a
            value is missing, a line has more cells than the first one, or
            path, split or group is there twice.
    """
    rows = _rows(path)
    _, columns = next(rows, (1, []))
    _check_columns(path, columns, needed)
    number = None
    for number, cells in rows:
        row: dict[str, Any] = dict.fromkeys(columns)
        for name, cell in zip(columns, cells, strict=False):
            row[name] = SEPARATOR.join(filter(None, (row[name], cell)))
        surplus = cells[len(columns) :]
        if any(surplus):
            raise UsageError(
                f"Line {number} of {path} has more cells than the first line "
                f"names. Received: {surplus} after {cells[: len(columns)]}. "
                "Put quotes around a text with a comma."
            )
        if not all(row[name] for name in needed):
            given = ", ".join(f"{n}={row[n]!r}" for n in needed)
            raise UsageError(
                f"Line {number} of {path} must have a "
                f"{' and a '.join(needed)}. Received: {given}"
            )
        # NumPy ends a text there, so that two could become one.
        if any("\0" in cell for cell in cells):
            raise UsageError(
                f"Line {number} of {path} holds the character NUL. Save the "
                "file as text in UTF-8."
            )
        yield number, row
    if number is None:
        raise UsageError(
            f"{path} must list images. Received: no line after the first."
        )


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of each row that is not empty, and its last line."""
    begins = 1
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            for cells in reader:
                begins = reader.line_num + 1
                if cells:
                    yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise UsageError(
            f"`{path}` must be a CSV file. Received: {error}, in the row that "
            f"begins on line {begins}. Close every quote, and double one "
            "inside a text in quotes."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"`{path}` must be a CSV file in UTF-8. Received: {error}"
        ) from error


def _check_columns(path, columns, needed):
    twice = [name for name in columns if columns.count(name) > 1]
    if not {*needed} <= {*columns}:
        raise UsageError(
            f"The first line of {path} must name the columns "
            f"{' and '.join(needed)}. Received: columns={columns}"
        )
    if {*twice} & {*needed, "path", "split", "group"} - {"label"}:
        raise UsageError(
            f"The first line of {path} must name each column once, but for "
            f"label. Received: columns={columns}"
        )


def _labels(text: str | None, where: str) -> list[str]:
    """Returns the labels of a cell."""
    if not text:
        return []
    labels = [composed(label.strip()) for label in text.split(SEPARATOR)]
    if not all(labels):
        raise UsageError(
            f"The labels {where} must not be empty. Received: {text!r}. "
            f"{SEPARATOR!r} separates several labels of an image."
        )
    return labels


def _groups(path: Path, groups: list[str]) -> np.ndarray | None:
    """Returns the numbers of groups, or `None` without any."""
    if not any(groups):
        return None
    if not all(groups):
        raise UsageError(
            f"Every line of {path} must have a group, or none. Received: "
            f"{groups.count('')} of {len(groups)} images without."
        )
    return _numbered([(name,) for name in groups], sorted_labels({*groups}))


def _numbered(labels: list[tuple[str, ...]], names: list[str]) -> np.ndarray:
    """Returns the numbers of single labels, or a matrix if any has several."""
    number = {name: label for label, name in enumerate(names)}
    if all(len(own) == 1 for own in labels):
        return np.array([number[own[0]] for own in labels])
    matrix = np.zeros((len(labels), len(names)), bool)
    for row, own in zip(matrix, labels, strict=True):
        row[[number[label] for label in own]] = True
    return matrix
