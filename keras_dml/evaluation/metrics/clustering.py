"""Clusters embeddings, and compares clusters with classes."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_dml.checks import (
    integer_at_least,
    of_shape,
    one_of,
    positive_integer,
    require,
)
from keras_dml.embeddings.checks import as_array, as_embeddings, as_labels

INITS = ("random", "k-means++")


def cluster(
    embeddings: Any,
    num_clusters: int,
    init: str = "random",
    num_starts: int = 1,
    max_iterations: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """Clusters embeddings by k-means.

    Random initialization is the default because k-means++ takes longer to
    choose the first centers of thousands of clusters than Lloyd's iterations
    take to move them.

    Args:
        embeddings: Array `(rows, dim)`.
        num_clusters: Integer, at most the number of rows.
        init: `"random"` or `"k-means++"`. Defaults to `"random"`.
        num_starts: Integer, how often k-means starts; the best result is
            kept. Defaults to `1`.
        max_iterations: Integer, the maximum number of iterations of a start.
            Defaults to `100`.
        seed: Integer. Defaults to `0`.

    Returns:
        Int64 array `(rows,)` with values below `num_clusters`.

    Raises:
        UsageError: If there are fewer rows than clusters, `init` is unknown,
            or a number is out of its range.
    """
    # Imported here: loading it takes longer than most evaluations.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = as_embeddings(embeddings)
    positive_integer("num_clusters", num_clusters)
    check_clustering(init, num_starts, max_iterations, seed)
    enough = num_clusters <= len(rows)
    wanted = f"at most the number of embeddings, {len(rows)}"
    require(enough, "num_clusters", wanted, num_clusters)
    means = KMeans(
        num_clusters,
        init=init,
        n_init=num_starts,
        max_iter=max_iterations,
        random_state=seed,
        algorithm="lloyd",
    )
    with warnings.catch_warnings():
        # Ignores the warning of too few distinct points: the score shows them.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Threads add in any order; in float64 no point changes its cluster.
        return means.fit_predict(rows.astype(np.float64)).astype(np.int64)


def check_clustering(
    init: str = "random",
    num_starts: int = 1,
    max_iterations: int = 100,
    seed: int = 0,
) -> None:
    """Raises if `cluster` does not take these arguments.

    Raises:
        UsageError: If one of them is unknown or out of its range.
    """
    one_of("init", init, INITS)
    positive_integer("num_starts", num_starts)
    positive_integer("max_iterations", max_iterations)
    integer_at_least("seed", seed, 0, most=2**32 - 1)


AVERAGES: dict[str, Callable[[float, float], float]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: float(np.sqrt(a * b)),
}


def normalized_mutual_information(
    labels: Any, clusters: Any, average: str = "arithmetic"
) -> float:
    """Computes NMI: mutual information divided by the mean entropy.

    `I(labels; clusters) / mean(H(labels), H(clusters))`.

    Args:
        labels: 1D array `(rows,)` of classes.
        clusters: 1D array `(rows,)` of clusters.
        average: `"arithmetic"` or `"geometric"`, the mean of the entropies.
            The geometric NMI is never smaller. Papers before 2019 report it,
            because it was the default of scikit-learn then. Defaults to
            `"arithmetic"`.

    Returns:
        Float in [0, 1].

    Raises:
        UsageError: If `average` is unknown, or the arrays do not match.
    """
    from sklearn.metrics import normalized_mutual_info_score

    one_of("average", average, AVERAGES)
    labels, clusters = _of_equal_rows(labels, clusters)
    score = normalized_mutual_info_score(
        labels, clusters, average_method=average
    )
    return float(np.clip(score, 0.0, 1.0))


def adjusted_mutual_information(
    labels: Any, clusters: Any, average: str = "arithmetic"
) -> float:
    """Computes AMI: mutual information adjusted for random clusters.

    `(I - E[I]) / (mean(H(labels), H(clusters)) - E[I])`, where `E[I]` is the
    mean for random clusters of the same sizes. With thousands of small
    classes random clusters have a large NMI, but an AMI around 0.

    Args:
        labels: 1D array `(rows,)` of classes.
        clusters: 1D array `(rows,)` of clusters.
        average: `"arithmetic"` or `"geometric"`. Defaults to `"arithmetic"`.

    Returns:
        Float of at most 1, around 0 for random clusters.

    Raises:
        UsageError: If `average` is unknown, or the arrays do not match.

    Example:

    >>> adjusted_mutual_information([0, 0, 1, 1], [5, 5, 3, 3])
    1.0

    Reference:
        Vinh, Epps and Bailey, "Information Theoretic Measures for Clusterings
        Comparison", 2010.
    """
    one_of("average", average, AVERAGES)
    labels, clusters = _of_equal_rows(labels, clusters)
    _, classes, class_sizes = np.unique(
        labels, return_inverse=True, return_counts=True
    )
    _, groups, cluster_sizes = np.unique(
        clusters, return_inverse=True, return_counts=True
    )
    if len(class_sizes) == len(cluster_sizes) == 1:
        return 1.0
    pairs = classes * len(cluster_sizes) + groups
    _, pair_sizes = np.unique(pairs, return_counts=True)
    entropies = _entropy(class_sizes), _entropy(cluster_sizes)
    information = sum(entropies) - _entropy(pair_sizes)
    expected = expected_information(class_sizes, cluster_sizes)
    most = AVERAGES[average](*entropies)
    smallest = np.finfo(np.float64).eps
    room = most - expected
    # Rounding may change the sign, so it is kept away from zero.
    room = min(room, -smallest) if room < 0 else max(room, smallest)
    return float(min((information - expected) / room, 1.0))


def expected_information(
    class_sizes: np.ndarray, cluster_sizes: np.ndarray
) -> float:
    """Computes the mean mutual information of random clusters.

    `sum over a, b, n of P(n) * n/N * log(N * n / (a * b))`, where `n` is the
    number of images that are in both a class of size `a` and a cluster of
    size `b`; its distribution is hypergeometric. Thousands of classes have
    few different sizes, so equal sizes are summed once.

    Args:
        class_sizes: 1D integer array of positive sizes.
        cluster_sizes: 1D integer array of the same sum `N`.
    """
    from scipy.special import gammaln

    total = int(np.sum(class_sizes))
    log_factorial = gammaln(np.arange(total + 1) + 1.0)
    sizes, size_counts = np.unique(cluster_sizes, return_counts=True)
    expected = 0.0
    for a, a_count in zip(
        *np.unique(class_sizes, return_counts=True), strict=True
    ):
        # All pairs of a cluster size and a possible overlap, in flat arrays.
        first = np.maximum(1, a + sizes - total)
        lengths = np.minimum(a, sizes) - first + 1
        b = np.repeat(sizes, lengths)
        starts = np.cumsum(lengths) - lengths
        n = np.arange(len(b)) - np.repeat(starts - first, lengths)
        log_p = (
            log_factorial[a]
            + log_factorial[b]
            + log_factorial[total - a]
            + log_factorial[total - b]
            - log_factorial[total]
            - log_factorial[n]
            - log_factorial[a - n]
            - log_factorial[b - n]
            - log_factorial[total - a - b + n]
        )
        terms = n / total * (np.log(n) + np.log(total / a) - np.log(b))
        weights = np.repeat(size_counts, lengths)
        expected += a_count * float(np.sum(weights * terms * np.exp(log_p)))
    return expected


def _of_equal_rows(labels: Any, clusters: Any) -> tuple[np.ndarray, np.ndarray]:
    array = as_array(labels, "labels", "one class a row")
    num_rows = len(of_shape("labels", array, "rows"))
    return (
        as_labels(labels, num_rows, "labels"),
        as_labels(clusters, num_rows, "clusters"),
    )


def _entropy(sizes: np.ndarray) -> float:
    shares = sizes / sizes.sum()
    return float(-np.sum(shares * np.log(shares)))
