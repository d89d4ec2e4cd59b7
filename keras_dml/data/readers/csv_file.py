"""Reads a CSV file with the columns path, label and, optionally, split."""

import collections
import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_dml.data import splits
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import keep_found
from keras_dml.errors import UsageError

# Python converts no number of more than 4,300 digits.
LONGEST_NUMBER = 100


def read_csv(path, allow_partial: bool = False) -> Manifest:
    """Reads `path,label[,split]`; paths are relative to the file.

    `split` is train or test. Without it the first half of the classes
    trains. Labels are sorted, as numbers if all of them are numbers.

    Args:
        path: Path of the file.
        allow_partial: Boolean, whether to continue if images are missing.
            Defaults to `False`.

    Returns:
        `Manifest`; `seen` if a class is in both splits.

    Raises:
        UsageError: If the file, a column, a value or an image is missing.
    """
    path = Path(path)
    rows = []
    for number, row in iterate_table(path, "path", "label"):
        rows.append(row)
        if (row.get("split", "test") or "").lower() not in ("train", "test"):
            raise UsageError(
                f"The split on line {number} of {path} must be train or "
                f"test. Received: {row['split']!r}"
            )
    names = [row["path"] for row in rows]
    check_listed_once(path, names)
    values = {row["label"] for row in rows}
    class_names = sorted_labels(values)
    label_of = {name: label for label, name in enumerate(class_names)}
    labels = np.asarray([label_of[row["label"]] for row in rows])
    if "split" in rows[0]:
        split = np.asarray([row["split"].lower() for row in rows])
        of_train = set(labels[split == "train"].tolist())
        seen = bool(of_train & set(labels[split == "test"].tolist()))
    else:
        split, seen = splits.class_disjoint(labels), False
    manifest = Manifest(
        name=path.stem,
        labels=labels,
        class_names=class_names,
        ids=names,
        paths=[str(path.parent / name) for name in names],
        split=split,
        seen=seen,
    )
    advice = f"Correct the paths, which are relative to {path.parent}"
    return keep_found(manifest, path, allow_partial, advice)


def sorted_labels(labels: Iterable[str]) -> list[str]:
    """Sorts the names of classes, as numbers if all of them are numbers.

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
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the lines of a CSV file with their numbers, as dictionaries.

    Args:
        path: Path of the file.
        *needed: Columns that the file must have, with a value in each line.

    Raises:
        UsageError: If the file cannot be read or has no line, or a column or
            a value is missing.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or ()]
            if not {*needed} <= {*columns}:
                raise UsageError(
                    f"The first line of {path} must name the columns "
                    f"{' and '.join(needed)}. Received: columns={columns}"
                )
            reader.fieldnames = columns
            row = None
            for row in reader:
                if not all(row[name] for name in needed):
                    given = ", ".join(f"{n}={row[n]!r}" for n in needed)
                    raise UsageError(
                        f"Line {reader.line_num} of {path} must have a "
                        f"{' and a '.join(needed)}. Received: {given}"
                    )
                # NumPy ends a text there, so that two could become one.
                if any("\0" in str(value) for value in row.values()):
                    raise UsageError(
                        f"Line {reader.line_num} of {path} holds the "
                        "character NUL. Save the file as text in UTF-8."
                    )
                yield reader.line_num, row
            if row is None:
                raise UsageError(
                    f"{path} must list images. Received: no line after the "
                    "first."
                )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"`{path}` must be a CSV file in UTF-8. Received: {error}"
        ) from error


def check_listed_once(path: Path, names: Sequence[str]) -> None:
    """Raises if a file lists an image more than once.

    Raises:
        UsageError: If a path repeats; the message names it.
    """
    if len(set(names)) < len(names):
        name, times = collections.Counter(names).most_common(1)[0]
        raise UsageError(
            f"Every path of {path} must be listed once. Received: {name!r} "
            f"{times} times."
        )
