"""Measures how well images find others of their group of classes."""

import numpy as np

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.roles import query_rows, reference_rows

MOST_QUERIES = 2000


def measure_groups(
    embeddings: np.ndarray, manifest: Manifest, config: RunConfig
) -> dict[str, float]:
    """Measures how well images find others of their group of classes.

    At most 2,000 queries, spread evenly, search all references: a group has
    many images.

    Args:
        embeddings: One row for each image.
        manifest: The images.
        config: Configuration that defines the metrics.

    Returns:
        Dict of `recall@1` and `map@r`, where images of one group belong
        together; empty if there are no groups.
    """
    groups = manifest.group
    if groups is None or len(np.unique(groups)) < 2:
        return {}
    queries = query_rows(manifest.role)
    references = reference_rows(manifest.role)
    count = min(len(queries), MOST_QUERIES)
    queries = queries[np.linspace(0, len(queries) - 1, count).astype(int)]
    metrics = evaluate_retrieval(
        embeddings[queries],
        groups[queries],
        reference_embeddings=embeddings[references],
        reference_labels=groups[references],
        query_ids=manifest.ids[queries],
        reference_ids=manifest.ids[references],
        k=1,
        normalize=config.evaluation.normalize,
    ).metrics
    return {name: metrics[name] for name in ("recall@1", "map@r")}
