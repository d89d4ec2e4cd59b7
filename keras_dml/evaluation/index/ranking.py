"""Finds ranks and nearest neighbors in a row of scores without sorting it.

`ranks_of` and `nearest` order a row by score, larger first, and equal scores by
column. Counting the scores above a positive takes one pass over memory; sorting
the row is as much work as 4 passes over a short row, and 50 over a long one.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

# What sorting a row costs in passes over it, measured from 100 to 300,000.
FEWEST_PASSES, MOST_PASSES, COLUMNS_PER_PASS = 4, 50, 1500
# With fewer groups, the inner loop over their maxima is too short to be fast.
MIN_GROUPS = 1024


def ranks_of(scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns the ranks, counted from 1, of some columns in a row of scores.

    Args:
        scores: 1D float array without NaN.
        columns: 1D integer array of distinct columns.

    Returns:
        1D int64 array as long as `columns`, ascending.

    Example:

    >>> ranks_of(np.array([0.5, 0.9, 0.5, 0.1]), np.array([0, 2]))
    array([2, 3])
    """
    if len(columns) > _passes_of_a_sort(scores):
        return _ranks_by_sorting(scores, columns)
    ranks = [_rank_by_counting(scores, column) for column in columns.tolist()]
    return np.sort(np.array(ranks, dtype=np.int64))


def nearest(scores: np.ndarray, k: int) -> np.ndarray:
    """Returns the columns of the `k` largest scores, the largest first.

    The columns are divided into groups. The `k`-th largest group maximum is a
    bound that all of the `k` largest scores reach and few other scores reach,
    so that only a few scores are sorted.

    Args:
        scores: 1D float array without NaN.
        k: Integer, at most the length of `scores`.

    Returns:
        1D int64 array `(k,)`.

    Example:

    >>> nearest(np.array([0.5, 0.9, 0.5, 0.1]), k=3)
    array([1, 0, 2])
    """
    # Methods: calling NumPy's functions takes longer than the work itself.
    width = len(scores) // max(2 * k, MIN_GROUPS)
    if width > 1:
        # Groups are strided, so that the maxima run at memory speed.
        usable = len(scores) - len(scores) % width
        maxima = scores[:usable].reshape(width, -1).max(axis=0)
    else:
        maxima = scores.copy()
    last = len(maxima) - k
    maxima.partition(last)
    (columns,) = (scores >= maxima[last]).nonzero()
    order = (-scores[columns]).argsort(kind="stable")
    return columns[order[:k]]


def _passes_of_a_sort(scores: np.ndarray) -> int:
    passes = FEWEST_PASSES + len(scores) // COLUMNS_PER_PASS
    return min(passes, MOST_PASSES)


def _rank_by_counting(scores: np.ndarray, column: int) -> int:
    score = scores[column]
    before = np.count_nonzero(scores[:column] >= score)
    after = np.count_nonzero(scores[column + 1 :] > score)
    return 1 + int(before + after)


def _ranks_by_sorting(scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
    ordered = np.sort(scores)
    values = scores[columns]
    stop = np.searchsorted(ordered, values, "right")
    ranks = 1 + len(scores) - stop
    tied = stop - np.searchsorted(ordered, values, "left") > 1
    if np.count_nonzero(tied) > _passes_of_a_sort(scores):
        positions = np.empty(len(scores), np.int64)
        order = np.argsort(-scores, kind="stable")
        positions[order] = np.arange(1, len(scores) + 1)
        ranks = positions[columns]
    else:
        for index in np.flatnonzero(tied):
            ranks[index] = _rank_by_counting(scores, int(columns[index]))
    return np.sort(ranks)


# With fewer scores, starting threads takes longer than they save.
MIN_SCORES_FOR_THREADS = 2**20
ROWS_PER_TASK = 32


def map_rows(function: Callable, *sequences: Any) -> list:
    """Maps a function over rows in threads.

    The threads run in parallel because NumPy releases the lock of Python.

    Args:
        function: Function of one row of each sequence.
        *sequences: Sequences of equal length, the first a 2D array.

    Returns:
        List of the results of the function, in the order of the rows.

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
