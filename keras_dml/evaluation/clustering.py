"""How well clusters of the embeddings agree with the classes."""

import warnings
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.validation import as_counts, as_embeddings

AVERAGES = ("arithmetic", "geometric")


def cluster(
    embeddings: Any,
    num_clusters: int,
    init: str = "random",
    num_starts: int = 1,
    max_iterations: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """Clusters embeddings by k-means.

    Random initialisation is the default because k-means++ takes longer to
    choose the first centres of thousands of clusters than Lloyd's iterations
    take to move them.

    Args:
        embeddings: Array `(rows, dim)`.
        num_clusters: Integer, at most the number of rows.
        init: `"random"` or `"k-means++"`. Defaults to `"random"`.
        num_starts: Integer, the best of so many starts is kept. Defaults to
            `1`.
        max_iterations: Integer, the most iterations of a start. Defaults to
            `100`.
        seed: Integer. Defaults to `0`.

    Returns:
        Int64 array `(rows,)` with values below `num_clusters`.

    Raises:
        UsageError: If there are fewer rows than clusters.
    """
    # Imported late: loading it takes longer than most evaluations.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = as_embeddings(embeddings)
    (num_clusters,) = as_counts(num_clusters, "num_clusters")
    if num_clusters > len(rows):
        raise UsageError(
            "`num_clusters` must be at most the number of embeddings, "
            f"{len(rows)}. Received: num_clusters={num_clusters}. Ask for "
            "fewer clusters."
        )
    means = KMeans(
        num_clusters,
        init=init,
        n_init=num_starts,
        max_iter=max_iterations,
        random_state=seed,
        algorithm="lloyd",
    )
    with warnings.catch_warnings():
        # Fewer distinct points than clusters: the score shows it anyway.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Threads add in any order; in float64 that moves no point.
        return means.fit_predict(rows.astype(np.float64)).astype(np.int64)


def normalized_mutual_information(
    labels: Any, clusters: Any, average: str = "arithmetic"
) -> float:
    """Mutual information of classes and clusters over their mean entropy.

    `I(labels; clusters) / mean(H(labels), H(clusters))`.

    Args:
        labels: 1D array `(rows,)` of classes.
        clusters: 1D array `(rows,)` of clusters.
        average: `"arithmetic"` or `"geometric"`, which is never smaller.
            Papers before 2019 report the geometric one, the default of
            scikit-learn in those days. Defaults to `"arithmetic"`.

    Returns:
        Float in [0, 1].

    Raises:
        UsageError: If `average` is unknown.
    """
    from sklearn.metrics import normalized_mutual_info_score

    if average not in AVERAGES:
        raise UsageError(
            f"`average` must be one of {AVERAGES}. "
            f"Received: average={average!r}. Choose one of them."
        )
    score = normalized_mutual_info_score(
        labels, clusters, average_method=average
    )
    return float(np.clip(score, 0.0, 1.0))
