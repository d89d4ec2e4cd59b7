"""How embeddings become rows whose dot product ranks them."""

import dataclasses
from typing import Self

import numpy as np

from keras_dml.errors import UsageError

METRICS = ("cosine", "euclidean", "dot")

ROWS_PER_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Space:
    """A metric as a map of rows, followed by a dot product and a bias.

    Rows by "cosine" become unit rows. By "euclidean" they move by `offset`,
    which changes no distance but keeps float32 accurate where the embeddings
    lie far from the origin, and `q.r - |r|^2 / 2` orders references `r` as
    `-|q - r|^2` does.

    Args:
        metric: `"cosine"`, `"euclidean"` or `"dot"`.
        offset: Float32 array `(dim,)`, subtracted by "euclidean" alone.
    """

    metric: str
    offset: np.ndarray

    @classmethod
    def fit(cls, references: np.ndarray, metric: str) -> Self:
        """Chooses the offset for float32 references `(rows, dim)`."""
        offset = np.zeros(references.shape[1], np.float32)
        if metric == "euclidean":
            offset = _coarse_centre(references)
        return cls(metric, offset)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Float32 rows `(rows, dim)`, ready for the product."""
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
        """What to subtract from the products with each transformed row."""
        if self.metric != "euclidean":
            return None
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return (squares / 2).astype(np.float32)

    def public_scores(
        self, scores: np.ndarray, queries: np.ndarray
    ) -> np.ndarray:
        """Cosines, dot products or negative squared distances.

        Args:
            scores: Float32 array `(queries, k)`, biases subtracted.
            queries: Transformed queries.
        """
        if self.metric != "euclidean":
            return scores
        squares = np.einsum("ij,ij->i", queries, queries)
        return np.minimum(2 * scores - squares[:, None], 0.0)


def check_metric(metric: str) -> None:
    """Refuses what is no metric."""
    if metric not in METRICS:
        raise UsageError(
            f"`metric` must be one of {METRICS}. "
            f"Received: metric={metric!r}. Choose one of them."
        )


def _divide(rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Quotients in float64, rounded to float32 a few rows at a time."""
    quotients = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        quotients[block] = rows[block] / norms[block, None]
    return quotients


def _coarse_centre(rows: np.ndarray) -> np.ndarray:
    """Means rounded to an eighth of the spread or less, as dyadic numbers.

    Subtracting a round number keeps embeddings on a grid on their grid, so
    that equal distances stay exactly equal.
    """
    low = rows.min(axis=0).astype(np.float64)
    spread = rows.max(axis=0) - low
    varies = spread > 0
    unit = np.exp2(np.floor(np.log2(np.where(varies, spread, 1.0))) - 3)
    centre = np.round(rows.mean(axis=0, dtype=np.float64) / unit) * unit
    return np.where(varies, centre, low).astype(np.float32)
