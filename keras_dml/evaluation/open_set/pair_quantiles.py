"""Computes exact quantiles of the scores of all pairs, in bounded memory.

Sixty thousand images have 1.8 billion pairs. Two passes over the pairs select
quantiles as a radix sort does. The first pass counts the upper 16 bits of each
float32 score. The second counts the lower 16 bits of those scores that have
the upper bits of a quantile. The result is exact to the last bit and needs two
tables of 65,536 counts for each quantile.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

BINS = 2**16
PairBlocks = Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]


def ordered_keys(scores: np.ndarray) -> np.ndarray:
    """Maps finite float32 scores to int32 keys of the same order."""
    # Adding zero turns -0.0 into 0.0, which is equal but has other bits.
    bits = (scores + np.float32(0)).view(np.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def score_of_key(key: int) -> float:
    """Returns the float32 score of a key as a Python float."""
    bits = np.array([key], np.int64).astype(np.int32)
    return float((bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(np.float32)[0])


def count_pairs(pairs: PairBlocks) -> np.ndarray:
    """Counts the upper bits of all scores.

    Args:
        pairs: Function without arguments that yields blocks
            `(scores, positive)`, the same blocks at every call.

    Returns:
        Int64 array `(2, 65536)`, the counts of impostor and genuine pairs.
    """
    counts = np.zeros((2, BINS), np.int64)
    for scores, positive in pairs():
        _count((ordered_keys(scores) >> 16) + BINS // 2, positive, counts)
    return counts


def select_thresholds(
    pairs: PairBlocks, counts: np.ndarray, allowed: Sequence[int]
) -> list[tuple[float, int, int]]:
    """Selects the smallest scores that few enough impostor pairs reach.

    Args:
        pairs: As for `count_pairs`.
        counts: The result of `count_pairs`.
        allowed: Integers, for each score the maximum number of impostor pairs
            that may reach it; each below the number of impostor pairs.

    Returns:
        For each of `allowed` a tuple (score, number of impostor pairs that
        reach it, number of genuine pairs that do not).
    """
    # Impostor pairs in a bin or above it, and genuine pairs below it.
    reach = np.cumsum(counts[0][::-1])[::-1]
    below = np.concatenate([[0], np.cumsum(counts[1])])
    # The highest bin that more impostor pairs reach than are allowed.
    bins = [int(np.flatnonzero(reach > most)[-1]) for most in allowed]
    tables = _count_within(pairs, bins)
    found = []
    for most, upper in zip(allowed, bins, strict=True):
        impostors, genuine = tables[upper]
        above = int(reach[upper]) - int(impostors.sum())
        rest = above + np.append(np.cumsum(impostors[::-1])[::-1], 0)
        lower = int(np.flatnonzero(rest <= most)[0])
        missed = int(below[upper]) + int(genuine[:lower].sum())
        key = (upper - BINS // 2) * BINS + lower
        found.append((score_of_key(key), int(rest[lower]), missed))
    return found


def _count_within(
    pairs: PairBlocks, bins: Sequence[int]
) -> dict[int, np.ndarray]:
    tables = {upper: np.zeros((2, BINS), np.int64) for upper in bins}
    for scores, positive in pairs():
        keys = ordered_keys(scores)
        upper_bits = (keys >> 16) + BINS // 2
        for upper, table in tables.items():
            inside = np.flatnonzero(upper_bits == upper)
            _count(keys[inside] & 0xFFFF, positive[inside], table)
    return tables


def _count(bins: np.ndarray, positive: np.ndarray, table: np.ndarray) -> None:
    """Adds pairs to a table of impostor and genuine counts."""
    genuine = np.bincount(bins[positive], minlength=BINS)
    table[1] += genuine
    table[0] += np.bincount(bins, minlength=BINS) - genuine
