"""The batches of which the numbers of other libraries are kept.

Only numpy: the generators run where keras-dml is not installed.
"""

import numpy as np


def batches():
    """Labels and embeddings of a few small batches, by name."""
    rng = np.random.default_rng(20)
    near = rng.standard_normal((4, 6))[np.arange(12) // 3]
    return {
        "balanced": (np.arange(12) // 3, rng.standard_normal((12, 6))),
        "clustered": (
            np.arange(12) // 3,
            near + 0.7 * rng.standard_normal((12, 6)),
        ),
        "square": (np.arange(16) // 4, rng.standard_normal((16, 5))),
        "shuffled": (
            rng.permutation(np.arange(16) % 4),
            rng.standard_normal((16, 3)),
        ),
        "uneven": (
            np.array([1, 0, 2, 0, 3, 0, 1, 0, 2, 1, 0, 3]),
            rng.standard_normal((12, 4)),
        ),
    }


CLASSES = 6


def proxies(dim, centers=1):
    """Weights `(classes * centers, dim)`; no row is of the last two classes."""
    rng = np.random.default_rng(21)
    return rng.standard_normal((CLASSES * centers, dim))


def indicators(labels):
    """Rows of several labels: their class, and one of three others."""
    others = np.arange(len(labels)) % 3
    return np.concatenate([np.eye(4)[labels], np.eye(3)[others]], axis=1)


def load(folder, name):
    """The kept numbers as `{batch: {loss: (value, gradient)}}`."""
    kept = {}
    with np.load(folder / name) as arrays:
        for key in arrays.files:
            batch, loss, what = key.split("/")
            entry = kept.setdefault(batch, {}).setdefault(loss, {})
            entry[what] = arrays[key]
    return kept
