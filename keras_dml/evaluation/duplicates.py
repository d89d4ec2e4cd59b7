"""Rows that occur more than once."""

import numpy as np


def duplicate_rows(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds rows that equal an earlier row.

    Args:
        embeddings: Contiguous float32 array `(rows, dim)`.

    Returns:
        Tuple `(rows, originals)` of int64 arrays: `rows[i]` equals the
        earlier `originals[i]`, which itself is no duplicate.

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
