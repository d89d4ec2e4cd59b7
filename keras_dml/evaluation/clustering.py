"""Clusters of the embeddings."""

import warnings
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.validation import as_counts, as_embeddings


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
