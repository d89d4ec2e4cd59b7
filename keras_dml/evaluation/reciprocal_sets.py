"""Weighted sets of k-reciprocal neighbours, as sparse rows."""

import numpy as np
from scipy import sparse

# Pairs of images that are looked at together.
PAIRS_AT_A_TIME = 2**21


def reciprocal_sets(
    rows: np.ndarray, neighbours: np.ndarray, mean_distance: float
) -> sparse.csr_array:
    """Encodes each image by its k-reciprocal neighbours.

    `R(i)` are the neighbours of `i` that have `i` as a neighbour. It is
    widened by the sets `R'(q)` of half as many neighbours of its members `q`
    of which two thirds or more are in `R(i)` already. The weight of `j` is
    `exp(-d(i, j))`, and the weights of an image sum to 1.

    Args:
        rows: Float32 array `(images, dim)`, whose squared distances count.
        neighbours: Int64 array `(images, k + 1)`, each image itself and its
            `k` nearest others.
        mean_distance: Float, by which squared distances are divided.

    Returns:
        Sparse float64 array `(images, images)`.

    Reference:
        Zhong, Zheng, Cao and Li, "Re-ranking Person Re-identification with
        k-reciprocal Encoding", 2017, equations 3, 4 and 7.
    """
    half = round((neighbours.shape[1] - 1) / 2) + 1
    mutual = _mutual(neighbours)
    mutual_half = _mutual(neighbours[:, :half])
    sizes = mutual_half.sum(axis=1)
    blocks = []
    # Each row meets the half sets of its neighbours' neighbours.
    size = max(1, PAIRS_AT_A_TIME // (neighbours.shape[1] * half))
    for start in range(0, len(rows), size):
        block = mutual[start : start + size]
        shared = (block @ mutual_half.T).multiply(block).tocoo()
        wide = 3 * shared.data >= 2 * sizes[shared.coords[1]]
        chosen = sparse.csr_array(
            (
                np.ones(np.count_nonzero(wide), np.int32),
                (shared.coords[0][wide], shared.coords[1][wide]),
            ),
            block.shape,
        )
        union = (block + chosen @ mutual_half).tocsr()
        blocks.append(_weigh(rows, start, union, mean_distance))
    return sparse.vstack(blocks, format="csr")


def _mutual(neighbours: np.ndarray) -> sparse.csr_array:
    """Ones where two images are among the neighbours of each other."""
    num_images, k = neighbours.shape
    parts = []
    size = max(1, PAIRS_AT_A_TIME // k**2)
    for start in range(0, num_images, size):
        block = neighbours[start : start + size]
        images = np.arange(start, start + len(block))
        parts.append((neighbours[block] == images[:, None, None]).any(axis=2))
    mutual = np.concatenate(parts)
    starts = np.concatenate([[0], np.cumsum(mutual.sum(axis=1))])
    ones = np.ones(starts[-1], np.int32)
    return sparse.csr_array(
        (ones, neighbours[mutual], starts), (num_images, num_images)
    )


def _weigh(
    rows: np.ndarray,
    start: int,
    union: sparse.csr_array,
    mean_distance: float,
) -> sparse.csr_array:
    lengths = np.diff(union.indptr)
    images = start + np.repeat(np.arange(len(lengths)), lengths)
    weights = np.empty(len(images))
    size = max(1, PAIRS_AT_A_TIME // rows.shape[1])
    for first in range(0, len(images), size):
        pairs = slice(first, first + size)
        apart = rows[images[pairs]] - rows[union.indices[pairs]]
        squared = np.einsum("ij,ij->i", apart, apart, dtype=np.float64)
        weights[pairs] = np.exp(-squared / mean_distance)
    weights /= np.repeat(np.add.reduceat(weights, union.indptr[:-1]), lengths)
    return sparse.csr_array((weights, union.indices, union.indptr), union.shape)
