"""Reads the space-separated lists of the original data sets."""

from pathlib import Path

from keras_dml.errors import UsageError


def read_columns(path: Path, columns: int, skip: int = 0) -> list[list[str]]:
    """Splits every line at white space.

    Args:
        path: Path.
        columns: Integer, how many columns every line must have.
        skip: Integer, how many lines to pass over. Defaults to `0`.

    Returns:
        One list per column.

    Raises:
        UsageError: If the file is missing or a line has another number.
    """
    if not path.is_file():
        raise UsageError(
            f"{path.name} must be at {path}. Received: no such file. Unpack "
            "the published archive again, with its folders."
        )
    rows = []
    lines = path.read_text(encoding="utf-8").splitlines()
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
