"""A projection in closed form that knows how images of a class differ."""

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from keras_dml.checks import in_interval, positive_integer
from keras_dml.errors import UsageError


class Projection(NamedTuple):
    """The affine map `f = x W + b`.

    Attributes:
        kernel: Float64 array `(features, dim)`.
        bias: Float64 array `(dim,)`.
    """

    kernel: np.ndarray
    bias: np.ndarray


def within_class_whitening(
    features: Any, labels: Any, dim: int, shrinkage: float = 0.6
) -> Projection:
    """Computes the projection in which the images of a class differ equally.

    `f = (x - m) S^(-1/2) V` with the mean `m` of all rows and

    `S = (1 - shrinkage) S_w + shrinkage (tr(S_w) / D) I`,

    where `S_w` is the covariance of the rows around the mean of their class
    and `D` the number of features. `V` holds the `dim` directions in which
    the whitened rows vary most. With `shrinkage=1`, `S` is a multiple of the
    identity and the result is a principal component analysis. The projected
    rows have a root mean square length of 1.

    Few rows vary in fewer directions than `dim`. Images of other classes vary
    in the rest too, so `V` goes on with random directions of the rest, of a
    length that keeps that of a vector there in expectation.

    Directions in which the images of one class differ, such as their
    background, count less after it, also for classes that `labels` does not
    hold.

    Args:
        features: Float array `(n, D)`.
        labels: Integer array `(n,)`.
        dim: Integer, the number of columns of the kernel. Those that exceed
            `D` are zero.
        shrinkage: Float in (0, 1]. Defaults to `0.6`.

    Returns:
        `Projection`.

    Raises:
        UsageError: If the shapes do not match, there is no row, a feature is
            not finite, or an argument is out of range.

    Example:

    >>> features = np.random.default_rng(0).normal(size=(100, 8))
    >>> labels = np.repeat(np.arange(10), 10)
    >>> within_class_whitening(features, labels, dim=4).kernel.shape
    (8, 4)

    Reference:
        Hatch, Kajarekar and Stolcke, "Within-Class Covariance Normalization
        for SVM-based Speaker Recognition", 2006, section 3; Ledoit and Wolf,
        "A well-conditioned estimator for large-dimensional covariance
        matrices", 2004, equation 3 (the shrinkage); Johnson and Lindenstrauss,
        "Extensions of Lipschitz mappings into a Hilbert space", 1984 (the
        random directions).
    """
    positive_integer("dim", dim)
    in_interval("shrinkage", shrinkage, 0, 1, closed="right")
    features = np.asarray(features, np.float64)
    labels = np.asarray(labels)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise UsageError(
            "`features` must have shape (n, D) and `labels` (n,). Received: "
            f"features.shape={features.shape}, labels.shape={labels.shape}"
        )
    if not len(features):
        raise UsageError(
            "`features` must have at least one row. Received: "
            f"features.shape={features.shape}"
        )
    lost = np.count_nonzero(~np.isfinite(features).all(axis=1))
    if lost:
        raise UsageError(
            "`features` must be finite. Received: NaN or infinite values in "
            f"{lost} of {len(features)} rows. Leave these rows out, or mend "
            "the network that made them."
        )
    mean = features.mean(axis=0)
    within = _within_class_covariance(features, labels)
    level = np.trace(within) / len(within)
    shrunk = (1 - shrinkage) * within
    shrunk[np.diag_indices_from(shrunk)] += shrinkage * level
    values, vectors = _eigh(shrunk)
    # Without any variance within the classes there is nothing to whiten.
    roots = np.sqrt(values) if level > 0 else np.ones_like(values)
    whitening = (vectors / roots) @ vectors.T
    whitened = (features - mean) @ whitening
    kernel = np.zeros((features.shape[1], dim))
    kept = min(dim, features.shape[1])
    kernel[:, :kept] = whitening @ _directions(whitened, kept)
    length = np.sqrt(np.mean(np.sum(((features - mean) @ kernel) ** 2, 1)))
    # Equal rows have no length.
    if length > np.finfo(float).eps * np.abs(features).max():
        kernel /= length
    return Projection(kernel, -mean @ kernel)


def _eigh(matrix):
    # Two threads may wait for each other ten times as long as one takes.
    with threadpool_limits(1):
        return np.linalg.eigh(matrix)


def _directions(rows, count):
    """Returns those in which rows vary most, then random ones of the rest."""
    variances, directions = _eigh(rows.T @ rows)
    smallest = len(variances) * np.finfo(float).eps * max(variances[-1], 0)
    rank = min(count, int(np.count_nonzero(variances > smallest)))
    own = directions[:, ::-1][:, :rank]
    if rank == count:
        return own
    drawn = np.random.default_rng(0).normal(size=(len(own), count - rank))
    rest, _ = np.linalg.qr(drawn - own @ (own.T @ drawn))
    scale = np.sqrt((len(own) - rank) / (count - rank))
    return np.concatenate([own, scale * rest], axis=1)


def _within_class_covariance(features, labels):
    _, classes = np.unique(labels, return_inverse=True)
    sums = np.zeros((classes.max() + 1, features.shape[1]))
    np.add.at(sums, classes, features)
    means = sums / np.bincount(classes)[:, None]
    apart = features - means[classes]
    return apart.T @ apart / len(features)
