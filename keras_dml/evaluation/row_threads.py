"""A function of every row of a matrix, in threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Below so many scores starting threads costs more than it brings.
MIN_SCORES_FOR_THREADS = 2**20
ROWS_PER_TASK = 32


def map_rows(function: Callable, *sequences: Any) -> list:
    """Maps over rows in threads: numpy lets them run while it works.

    Args:
        function: Takes a row of each sequence.
        *sequences: Sequences of one length, the first a 2D array.

    Returns:
        List of what the function returned, in the order of the rows.

    Example:

    >>> map_rows(lambda row, k: row[k], np.eye(2), [0, 0])
    [np.float64(1.0), np.float64(0.0)]
    """
    scores = sequences[0]
    if scores.size < MIN_SCORES_FOR_THREADS:
        return list(map(function, *sequences))

    def run(start: int) -> list:
        stop = start + ROWS_PER_TASK
        return list(map(function, *(rows[start:stop] for rows in sequences)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(run, range(0, len(scores), ROWS_PER_TASK))
        return [result for part in parts for result in part]
