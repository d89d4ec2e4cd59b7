"""How similar pairs of one class are, and pairs of different classes."""

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation.index.spaces import Space

BINS = 80
MAX_ROWS = 2000
ROWS_AT_A_TIME = 256


def similarity_shares(
    embeddings: EmbeddingSet, normalize: bool, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Histograms of the similarities of pairs, each of sum 1.

    At most 2,000 images, drawn at random, are compared with all others.

    Args:
        embeddings: `EmbeddingSet`.
        normalize: Whether similarities are cosines; otherwise they are
            negative Euclidean distances.
        seed: Integer. Defaults to `0`.

    Returns:
        Tuple of the edges of the bins, the shares of the pairs of one class
        (zeros where there is none) and those of different classes.
    """
    metric = "cosine" if normalize else "euclidean"
    space = Space.fit(embeddings.embeddings, metric)
    rows = space.transform(embeddings.embeddings)
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(len(rows))[:MAX_ROWS]
    low, high = (-1.0, 1.0) if normalize else (-2 * _longest(rows), 0.0)
    edges = np.linspace(low, high, BINS + 1)
    counts = np.zeros((2, BINS))
    for start in range(0, len(drawn), ROWS_AT_A_TIME):
        block = drawn[start : start + ROWS_AT_A_TIME]
        values = rows[block] @ rows.T
        if not normalize:
            values = -_distances(values, rows, block)
        same = embeddings.labels[block][:, None] == embeddings.labels[None, :]
        others = np.ones(same.shape, bool)
        others[np.arange(len(block)), block] = False
        values = np.clip(values, low, high)
        for kind, chosen in enumerate((same & others, ~same)):
            counts[kind] += np.histogram(values[chosen], edges)[0]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return edges, shares[0], shares[1]


def _longest(rows: np.ndarray) -> float:
    longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    return longest or 1.0


def _distances(
    products: np.ndarray, rows: np.ndarray, block: np.ndarray
) -> np.ndarray:
    squares = np.einsum("ij,ij->i", rows, rows)
    squared = squares[block][:, None] + squares[None, :] - 2 * products
    return np.sqrt(np.maximum(squared, 0))
