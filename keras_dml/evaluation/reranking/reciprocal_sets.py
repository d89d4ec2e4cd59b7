"""The sets of neighbors by which k-reciprocal re-ranking compares images."""

import numpy as np
from scipy import sparse

from keras_dml.evaluation.blocks import row_blocks

# How many pairs of images are compared at a time.
PAIRS_AT_A_TIME = 2**21


def reciprocal_sets(
    rows: np.ndarray, neighbors: np.ndarray, mean_distance: float
) -> sparse.csr_array:
    """Encodes each image by its k-reciprocal neighbors.

    `R(i)` holds the neighbors of `i` that also have `i` as a neighbor.
    `R'(q)` is the same set for half as many neighbors. For each member `q` of
    `R(i)`, `R'(q)` is added to `R(i)` if two thirds or more of it are already
    in `R(i)`. The weight of `j` is `exp(-d(i, j))`, and the weights of an
    image sum to 1.

    Args:
        rows: Float32 array `(images, dim)`, compared by squared Euclidean
            distance.
        neighbors: Int64 array `(images, k + 1)`, each image itself and its
            `k` nearest others.
        mean_distance: Float, the divisor of the squared distances.

    Returns:
        Sparse float64 array `(images, images)`.

    Reference:
        Zhong, Zheng, Cao and Li, "Re-ranking Person Re-identification with
        k-reciprocal Encoding", 2017, equations 3, 4 and 7.
    """
    half = round((neighbors.shape[1] - 1) / 2) + 1
    mutual = _mutual(neighbors)
    mutual_half = _mutual(neighbors[:, :half])
    sizes = mutual_half.sum(axis=1)
    blocks = []
    # Each row of the product has up to `(k + 1) * half` entries.
    size = PAIRS_AT_A_TIME // (neighbors.shape[1] * half)
    for images in row_blocks(len(rows), size):
        block = mutual[images]
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
        blocks.append(_weigh(rows, images.start, union, mean_distance))
    return sparse.vstack(blocks, format="csr")


def _mutual(neighbors: np.ndarray) -> sparse.csr_array:
    """Marks with 1 the pairs of images that are neighbors of each other."""
    num_images, k = neighbors.shape
    parts = []
    images = np.arange(num_images)[:, None, None]
    for block in row_blocks(num_images, PAIRS_AT_A_TIME // k**2):
        found = neighbors[neighbors[block]] == images[block]
        parts.append(found.any(axis=2))
    mutual = np.concatenate(parts)
    starts = np.concatenate([[0], np.cumsum(mutual.sum(axis=1))])
    ones = np.ones(starts[-1], np.int32)
    return sparse.csr_array(
        (ones, neighbors[mutual], starts), (num_images, num_images)
    )


def _weigh(
    rows: np.ndarray, start: int, union: sparse.csr_array, mean_distance: float
) -> sparse.csr_array:
    lengths = np.diff(union.indptr)
    images = start + np.repeat(np.arange(len(lengths)), lengths)
    weights = np.empty(len(images))
    for pairs in row_blocks(len(images), PAIRS_AT_A_TIME // rows.shape[1]):
        apart = rows[images[pairs]] - rows[union.indices[pairs]]
        squared = np.einsum("ij,ij->i", apart, apart, dtype=np.float64)
        weights[pairs] = np.exp(-squared / mean_distance)
    weights /= np.repeat(np.add.reduceat(weights, union.indptr[:-1]), lengths)
    return sparse.csr_array((weights, union.indices, union.indptr), union.shape)
