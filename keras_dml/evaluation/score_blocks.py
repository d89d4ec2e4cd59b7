"""Scores of pairs by blocks, for what needs more than ranks."""

from collections.abc import Iterator

import numpy as np

from keras_dml.evaluation.relevance import Relevance
from keras_dml.evaluation.spaces import Space

BLOCK_BYTES = 2**25


def score_blocks(
    queries: np.ndarray, references: np.ndarray, metric: str
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields (first query, scores) with the scores of `ExactIndex`.

    Args:
        queries: Float32 array `(num_queries, dim)`.
        references: Float32 array `(num_references, dim)`.
        metric: `"cosine"` or `"euclidean"`.
    """
    space = Space.fit(references, metric)
    rows = space.transform(references)
    biases = space.biases(rows)
    for start, stop in _blocks(len(queries), len(rows)):
        block = space.transform(queries[start:stop])
        yield start, _scores(space, block, rows, biases)


def pair_scores(
    rows: np.ndarray, relevance: Relevance, metric: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields (scores, whether positives) of every pair of rows, once.

    Both are 1D arrays of one length; together the blocks have
    `rows * (rows - 1) / 2` entries.

    Args:
        rows: Float32 array `(rows, dim)`.
        relevance: `Relevance` of the rows among each other.
        metric: `"cosine"` or `"euclidean"`.
    """
    space = Space.fit(rows, metric)
    rows = space.transform(rows)
    biases = space.biases(rows)
    for start, stop in _blocks(len(rows), len(rows)):
        rest = None if biases is None else biases[start:]
        scores = _scores(space, rows[start:stop], rows[start:], rest)
        positive = relevance.block(start, stop)[:, start:]
        later = np.triu(np.ones(scores.shape, bool), 1)
        yield scores[later], positive[later]


def _blocks(num_queries: int, width: int) -> Iterator[tuple[int, int]]:
    size = max(1, BLOCK_BYTES // (4 * width))
    for start in range(0, num_queries, size):
        yield start, min(start + size, num_queries)


def _scores(
    space: Space, block: np.ndarray, rows: np.ndarray, biases: np.ndarray | None
) -> np.ndarray:
    scores = block @ rows.T
    if biases is not None:
        scores -= biases
    return space.public_scores(scores, block)
