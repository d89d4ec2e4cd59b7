"""Measures whether embeddings still use their dimensions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from keras_dml.checks import boolean
from keras_dml.embeddings.checks import as_embeddings, as_labels
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.spaces import (
    Space,
    duplicate_rows,
    metric_of,
)
from keras_dml.evaluation.labels import Relevance, as_label_sets, is_multi_label

# Variance below this share of the mean square is float32 rounding.
NO_VARIANCE = 1e-12
ROWS_AT_A_TIME = 1024
# A network starts with mean cosines up to 0.995. A healthy one falls below 0.99
# within an epoch; one that collapses never does.
COLLAPSED_SIMILARITY = 0.99
COLLAPSED_DIM = 2.0


def embedding_spectrum(embeddings: Any, normalize: bool = True) -> np.ndarray:
    """Computes the share of variance along each principal axis.

    The shares are the eigenvalues of the covariance divided by their sum,
    largest first.

    Args:
        embeddings: Array `(rows, dim)`.
        normalize: Boolean, whether to normalize the rows first. Defaults to
            `True`.

    Returns:
        Float64 array `(dim,)` of sum 1, or zeros when all rows are equal.

    Example:

    >>> embedding_spectrum([[1.0, 0.0], [-1.0, 0.0]])
    array([1., 0.])
    """
    rows = _rows(embeddings, normalize)
    mean = rows.mean(axis=0, dtype=np.float64)
    second = np.zeros((rows.shape[1], rows.shape[1]))
    for block in row_blocks(len(rows), ROWS_AT_A_TIME):
        centered = rows[block] - mean
        second += centered.T @ centered
    # Two threads may wait for each other ten times as long as one takes.
    with threadpool_limits(1):
        values = np.linalg.eigvalsh(second / len(rows))
    values = np.maximum(values[::-1], 0.0)
    total = values.sum()
    if total <= NO_VARIANCE * (total + mean @ mean):
        return np.zeros(rows.shape[1])
    return values / total


def effective_dim(spectrum: np.ndarray) -> float:
    """Computes how many dimensions the embeddings fill.

    `exp(-sum of s * log(s))`, the exponential of the spectrum's entropy: `d`
    if `d` axes share the variance equally, 1 if all embeddings lie on a line,
    0 if all are equal.

    Args:
        spectrum: Float array `(dim,)` from `embedding_spectrum`.

    Reference:
        Roy and Vetterli, "The effective rank: a measure of effective
        dimensionality", 2007.
    """
    shares = spectrum[spectrum > 0]
    if len(shares) == 0:
        return 0.0
    return float(np.exp(-np.sum(shares * np.log(shares))))


def participation_ratio(spectrum: np.ndarray) -> float:
    """Computes how many dimensions hold most of the variance.

    `(sum of s)^2 / sum of s^2`. It is never above `effective_dim`, because
    axes with a small variance count less.

    Args:
        spectrum: Float array `(dim,)` from `embedding_spectrum`.
    """
    squares = float(np.sum(np.square(spectrum)))
    return float(np.sum(spectrum)) ** 2 / squares if squares else 0.0


def mean_similarities(embeddings: Any, labels: Any) -> tuple[float, float]:
    """Computes the mean cosines of all positive and of all negative pairs.

    Sums over classes give both exactly, without comparing pairs. Only rows
    with several labels are compared pair by pair.

    Args:
        embeddings: Array `(rows, dim)`.
        labels: Labels of any form that `as_label_sets` reads.

    Returns:
        Tuple (positive, negative); NaN where there is no such pair.
    """
    rows = _rows(embeddings, normalize=True)
    if is_multi_label(labels):
        return _mean_similarities_of_pairs(rows, labels)
    labels = as_labels(labels, len(rows), "labels")
    _, codes, counts = np.unique(
        labels, return_inverse=True, return_counts=True
    )
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, codes, rows)
    itself = np.einsum("ij,ij->", rows, rows, dtype=np.float64)
    within = np.einsum("ij,ij->", sums, sums)
    total = sums.sum(axis=0)
    num_within = float(np.sum(counts**2))
    positive = _ratio(within - itself, num_within - len(rows))
    negative = _ratio(total @ total - within, len(rows) ** 2 - num_within)
    return positive, negative


def _mean_similarities_of_pairs(
    rows: np.ndarray, labels: Any
) -> tuple[float, float]:
    # Checked here, where they have the name that the caller knows.
    as_label_sets(labels, len(rows), "labels")
    relevance = Relevance.of(labels, len(rows), labels, len(rows))
    totals, counts = np.zeros(2), np.zeros(2)
    for block in row_blocks(len(rows), ROWS_AT_A_TIME):
        cosines = rows[block] @ rows.T
        same = relevance.block(block.start, block.stop)
        other = ~same
        places = np.arange(block.start, block.stop)
        same[np.arange(len(cosines)), places] = False
        other[np.arange(len(cosines)), places] = False
        for kind, chosen in enumerate((same, other)):
            totals[kind] += cosines.sum(where=chosen, dtype=np.float64)
            counts[kind] += np.count_nonzero(chosen)
    return _ratio(totals[0], counts[0]), _ratio(totals[1], counts[1])


def proxy_occupancy(
    embeddings: Any, proxies: Any, normalize: bool = True
) -> float:
    """Computes the share of the proxies that are nearest to any embedding.

    A proxy that is nearest to no embedding takes no part in a proxy loss with
    hard assignment, and indicates classes that are not separated.

    Args:
        embeddings: Array `(rows, dim)`.
        proxies: Array `(num_proxies, dim)`.
        normalize: Boolean, whether to compare by cosine; otherwise by
            Euclidean distance. Defaults to `True`.

    Returns:
        Float in (0, 1].
    """
    targets = as_embeddings(proxies, "proxies")
    rows = as_embeddings(embeddings, dim=targets.shape[1])
    index = ExactIndex(metric_of(normalize)).build(targets)
    nearest, _ = index.search(rows, k=1)
    return len(np.unique(nearest)) / len(targets)


def embedding_health(
    embeddings: Any,
    labels: Any = None,
    proxies: Any = None,
    normalize: bool = True,
) -> dict[str, float]:
    """Computes numbers that show a collapse before the metrics do.

    Args:
        embeddings: Array `(rows, dim)`.
        labels: Labels of any form that `as_label_sets` reads, or `None` to
            omit the similarities. Defaults to `None`.
        proxies: Array `(num_proxies, dim)`, or `None` to omit their
            occupancy. Defaults to `None`.
        normalize: Boolean, whether embeddings are compared as unit rows.
            Defaults to `True`.

    Returns:
        Dict of `effective_dim`, `participation_ratio`, `class_dim` (how many
        dimensions one point per class can span: the number of classes minus
        1, and at most the number of columns), `mean_norm` (before
        normalization) and `duplicates`, the share of rows that equal an
        earlier one; with labels also `positive_similarity`,
        `negative_similarity` (mean cosines) and `similarity_gap`, their
        difference; with proxies also `proxy_occupancy`.

    Raises:
        UsageError: If arrays do not match or hold NaN.

    Example:

    >>> health = embedding_health(np.eye(3), [0, 1, 2])
    >>> round(health["effective_dim"], 6), health["negative_similarity"]
    (2.0, 0.0)
    """
    rows = as_embeddings(embeddings)
    spectrum = embedding_spectrum(rows, normalize)
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    health = {
        "effective_dim": effective_dim(spectrum),
        "participation_ratio": participation_ratio(spectrum),
        "class_dim": float(rows.shape[1]),
        "mean_norm": float(np.sqrt(squares).mean()),
        "duplicates": len(duplicate_rows(rows)[0]) / len(rows),
    }
    if labels is not None:
        positive, negative = mean_similarities(rows, labels)
        health["positive_similarity"] = positive
        health["negative_similarity"] = negative
        health["similarity_gap"] = positive - negative
        classes = as_label_sets(labels, len(rows), "labels").values
        separable = float(len(np.unique(classes)) - 1)
        health["class_dim"] = min(health["class_dim"], separable)
    if proxies is not None:
        health["proxy_occupancy"] = proxy_occupancy(rows, proxies, normalize)
    return health


def collapse_warning(
    health: Mapping[str, float], normalize: bool = True
) -> str | None:
    """Describes how embeddings have collapsed, if they have.

    Embeddings have collapsed if they fill fewer than 2 dimensions, and fewer
    than half of the dimensions that separate classes span. Embeddings that
    are compared as unit rows have also collapsed if the mean cosine of images
    of two classes is above 0.99.

    Args:
        health: Dict from `embedding_health`.
        normalize: Boolean, whether embeddings are compared as unit rows.
            Defaults to `True`.

    Returns:
        A sentence, or `None` if the embeddings have not collapsed.

    Example:

    >>> collapse_warning(embedding_health(np.ones((4, 8)), [0, 0, 1, 1]))
    'All embeddings are one point.'
    """
    boolean("normalize", normalize)
    found, spanned = health["effective_dim"], health["class_dim"]
    if found == 0.0:
        return "All embeddings are one point."
    if found < min(COLLAPSED_DIM, spanned / 2):
        return (
            f"The embeddings fill {found:.2f} dimensions, where separate "
            f"classes would span {spanned:.0f}."
        )
    similarity = health.get("negative_similarity", 0.0)
    if normalize and similarity > COLLAPSED_SIMILARITY:
        return (
            f"Images of two classes have a mean cosine of {similarity:.4f}, "
            f"those of one class {health['positive_similarity']:.4f}: all "
            "embeddings point one way."
        )
    return None


def _rows(embeddings: Any, normalize: bool) -> np.ndarray:
    rows = as_embeddings(embeddings)
    if metric_of(normalize) != "cosine":
        return rows
    return Space.fit(rows, "cosine").transform(rows)


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else float("nan")
