"""Transforms embeddings into rows that a dot product ranks."""

import dataclasses
from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from keras_dml.checks import boolean
from keras_dml.errors import UsageError
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.labels import Relevance

METRICS = ("cosine", "euclidean", "dot")

ROWS_PER_BLOCK = 4096
# Below this share of a query's squared length, rounding blurs a distance.
NEAR = 1e-4
# How many scores are compared with it at a time.
NEAR_PAIRS = 2**17


def metric_of(normalize: bool) -> str:
    """Returns the metric that the argument `normalize` chooses.

    Raises:
        UsageError: If it is neither `True` nor `False`.
    """
    return "cosine" if boolean("normalize", normalize) else "euclidean"


@dataclasses.dataclass(frozen=True)
class Space:
    """Computes a metric by a transformation, a dot product and a bias.

    "cosine" normalizes the rows. "euclidean" subtracts `offset`, which
    changes no distance but keeps float32 accurate if the embeddings lie far
    from the origin. Then `2 q.r - |r|^2 - |q|^2` is the score of a query `q`
    and a reference `r`.

    Args:
        metric: `"cosine"`, `"euclidean"` or `"dot"`.
        offset: Float32 array `(dim,)`, subtracted by "euclidean" only.
    """

    metric: str
    offset: np.ndarray

    @classmethod
    def fit(cls, references: np.ndarray, metric: str) -> Self:
        """Chooses the offset for float32 references `(rows, dim)`."""
        offset = np.zeros(references.shape[1], np.float32)
        if metric == "euclidean":
            offset = _coarse_center(references)
        return cls(metric, offset)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Returns float32 rows `(rows, dim)`, ready for the dot product."""
        if self.metric == "euclidean":
            rows = rows - self.offset
        # In float64, so that no square overflows or vanishes.
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        if self.metric == "cosine":
            norms = np.sqrt(squares, out=squares)
            norms[norms == 0] = 1.0
            return _divide(rows, norms)
        if squares.max() > np.finfo(np.float32).max / 4:
            raise UsageError(
                f"Embeddings are too large to be compared by {self.metric!r} "
                f"in float32. Received: a norm of {squares.max() ** 0.5:.3g}. "
                "Scale them down, or compare them by 'cosine'."
            )
        return rows

    def biases(self, rows: np.ndarray) -> np.ndarray | None:
        """Returns the bias to subtract from the scores of each row.

        Args:
            rows: Transformed references.

        Returns:
            Float32 array `(rows,)`, or `None` if the metric has no bias.
        """
        if self.metric != "euclidean":
            return None
        return _squares(rows)

    def scores(
        self,
        queries: np.ndarray,
        rows: np.ndarray,
        biases: np.ndarray | None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns cosines, dot products or negative squared distances.

        Rounding may put a squared distance below zero, see `sharpen`.

        Args:
            queries: Transformed queries.
            rows: Transformed references.
            biases: Those of the references, see `biases`.
            out: Float32 array `(queries, rows)` to fill. Defaults to `None`,
                a new one.
        """
        if biases is None:
            return np.matmul(queries, rows.T, out=out)
        scores = np.matmul(2 * queries, rows.T, out=out)
        scores -= biases
        scores -= _squares(queries)[:, None]
        return scores


def distances(scores: ArrayLike, metric: str) -> np.ndarray:
    """Returns the distances of public scores; smaller is closer.

    Args:
        scores: Cosines, or negative squared distances.
        metric: `"cosine"`, for `1 - cosine`, or `"euclidean"`.

    Example:

    >>> distances([1.0, 0.25], "cosine"), distances([-4.0], "euclidean")
    (array([0.  , 0.75]), array([2.]))
    """
    scores = np.asarray(scores)
    if metric == "cosine":
        return np.maximum(1 - scores, 0)
    return np.sqrt(np.maximum(-scores, 0))


def sharpen(scores: np.ndarray, queries: np.ndarray, rows: np.ndarray) -> None:
    """Replaces squared distances that are not much larger than rounding.

    The product of two long rows that are nearly equal says only roughly how
    near they are; their difference says it.

    Args:
        scores: Float32 array `(queries, rows)` of negative squared distances.
        queries: Transformed queries.
        rows: Transformed references.
    """
    limits = np.float32(-NEAR) * _squares(queries)
    # The maxima take much less time than all places would.
    some = np.flatnonzero(scores.max(axis=1) > limits)
    for block in row_blocks(len(some), NEAR_PAIRS // len(rows)):
        chosen = some[block]
        places = np.flatnonzero(scores[chosen] > limits[chosen, None])
        near, columns = np.divmod(places, len(rows))
        apart = queries[chosen[near]] - rows[columns]
        scores[chosen[near], columns] = 0 - _squares(apart)


def _squares(rows: np.ndarray) -> np.ndarray:
    """Returns the squared lengths of rows, float32 but summed in float64."""
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares.astype(np.float32)


def _divide(rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Divides in float64 and rounds to float32, a few rows at a time."""
    quotients = np.empty(rows.shape, np.float32)
    for block in row_blocks(len(rows), ROWS_PER_BLOCK):
        quotients[block] = rows[block] / norms[block, None]
    return quotients


def _coarse_center(rows: np.ndarray) -> np.ndarray:
    """Computes means, rounded to multiples of a power of 2.

    The power of 2 is at most an eighth of the spread. If the embeddings lie
    on a grid, subtracting such a number keeps them on the grid, so that equal
    distances stay exactly equal.
    """
    low = rows.min(axis=0).astype(np.float64)
    spread = rows.max(axis=0) - low
    varies = spread > 0
    unit = np.exp2(np.floor(np.log2(np.where(varies, spread, 1.0))) - 3)
    center = np.round(rows.mean(axis=0, dtype=np.float64) / unit) * unit
    return np.where(varies, center, low).astype(np.float32)


BLOCK_BYTES = 2**25


def pair_scores(
    rows: np.ndarray, relevance: Relevance, metric: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields blocks (scores, positive) that cover each pair of rows once.

    Both are 1D arrays of equal length; `positive` is boolean. Together the
    blocks have `rows * (rows - 1) / 2` entries.

    Args:
        rows: Float32 array `(rows, dim)`.
        relevance: `Relevance` of the rows to each other.
        metric: `"cosine"` or `"euclidean"`.
    """
    space = Space.fit(rows, metric)
    rows = space.transform(rows)
    biases = space.biases(rows)
    for block in row_blocks(len(rows), BLOCK_BYTES // (4 * len(rows))):
        own = None if biases is None else biases[block.start :]
        scores = space.scores(rows[block], rows[block.start :], own)
        if metric == "euclidean":
            np.minimum(scores, 0, out=scores)
        positive = relevance.block(block.start, block.stop)[:, block.start :]
        later = np.triu(np.ones(scores.shape, bool), 1)
        yield scores[later], positive[later]


def duplicate_rows(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds rows that equal an earlier row.

    Args:
        embeddings: Contiguous float32 array `(rows, dim)`.

    Returns:
        Tuple `(rows, originals)` of int64 arrays: `rows[i]` equals the
        earlier row `originals[i]`, which is not a duplicate.

    Example:

    >>> duplicate_rows(np.array([[1], [2], [1]], "float32"))
    (array([2]), array([0]))
    """
    # Adding zero turns -0.0 into 0.0, which is equal but has other bits.
    words = np.ascontiguousarray(embeddings + np.float32(0)).view(np.uint32)
    generator = np.random.default_rng(0)
    factors = generator.integers(2**64, size=words.shape[1], dtype=np.uint64)
    hashes = np.einsum("ij,j->i", words, factors, dtype=np.uint64)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    originals = first[group]
    rows = np.flatnonzero(originals != np.arange(len(words)))
    originals = originals[rows]
    # Different rows may share a hash; they are then compared in full.
    equal = (words[rows] == words[originals]).all(axis=1)
    return rows[equal], originals[equal]
