"""Cuts rows into blocks, so that memory stays bounded."""

from collections.abc import Iterator


def row_blocks(num_rows: int, size: int) -> Iterator[slice]:
    """Yields slices of at most `size` rows, but of at least one.

    Example:

    >>> list(row_blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size = max(1, size)
    for start in range(0, num_rows, size):
        yield slice(start, min(start + size, num_rows))
