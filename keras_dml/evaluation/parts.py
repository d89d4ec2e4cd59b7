"""The queries of an evaluation, and the references that they search."""

import dataclasses
import os
from typing import Any

import numpy as np

from keras_dml.checks import require
from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.errors import UsageError


def query_and_gallery_parts(
    embeddings: Any, labels: Any, references: Any
) -> tuple[EmbeddingSet, EmbeddingSet]:
    """Returns the queries, and the references that they search.

    The arguments are those of `evaluate`. Of two sets whose classes have names
    in different orders, the labels become the names.

    Raises:
        UsageError: If there are no labels, the references are given twice or
            are the queries themselves, or two sets are of different weights,
            or matrices of different classes.
    """
    everything = _as_set(embeddings, labels)
    if references is None:
        if not everything.has_gallery:
            return everything, everything
        queries = everything.select(everything.queries)
        return queries, everything.select(everything.references)
    if everything.has_gallery:
        raise UsageError(
            "`references` must not be given for embeddings with a gallery. "
            "Received: both. Leave the references out."
        )
    given = (references, None)
    if isinstance(references, tuple):
        pair = len(references) == 2
        require(pair, "references", "a pair (embeddings, labels)", references)
        given = references
    gallery = _as_set(*given)
    _check_others(
        len(everything)
        if _is_same(embeddings, given[0])
        else _count_shared(everything, gallery)
    )
    _check_weights(everything, gallery)
    return _of_the_same_classes(everything, gallery)


def _check_others(count: int) -> None:
    if count:
        raise UsageError(
            "`references` must hold other images than `embeddings`, or a query "
            f"finds itself. Received: {count:,} of the queries among them. "
            "Leave these out, or all references to search the queries."
        )


def _is_same(one: Any, other: Any) -> bool:
    """Returns whether two arguments are one object, or one file."""
    paths = [
        os.path.realpath(given)
        for given in (one, other)
        if isinstance(given, str | os.PathLike)
    ]
    return one is other or (len(paths) == 2 and paths[0] == paths[1])


def _count_shared(queries: EmbeddingSet, gallery: EmbeddingSet) -> int:
    """Counts the images of equal names and equal embeddings.

    Two sets may give one name to two images, and numbers are mere positions.
    """
    rows, others = queries.embeddings, gallery.embeddings
    named = queries.ids.dtype.kind == gallery.ids.dtype.kind == "U"
    if not named or rows.shape[1] != others.shape[1]:
        return 0
    _, own, their = np.intersect1d(
        queries.ids, gallery.ids, assume_unique=True, return_indices=True
    )
    return int(np.count_nonzero((rows[own] == others[their]).all(axis=1)))


def _check_weights(queries: EmbeddingSet, gallery: EmbeddingSet) -> None:
    made, other = queries.weights_hash, gallery.weights_hash
    if made and other and made != other:
        raise UsageError(
            "`references` must be made by the weights of the queries, with "
            f"the hash {made}. Received: {other}. Embed both with one run."
        )


def _of_the_same_classes(
    queries: EmbeddingSet, gallery: EmbeddingSet
) -> tuple[EmbeddingSet, EmbeddingSet]:
    """Returns both sets with labels that mean the same classes."""
    names, others = queries.class_names, gallery.class_names
    if names is None or others is None or np.array_equal(names, others):
        return queries, gallery
    if 2 in (queries.labels.ndim, gallery.labels.ndim):
        raise UsageError(
            "`references` with a matrix of labels must have the same "
            "`class_names` as the queries, in the same order. Received: "
            f"{len(names)} and {len(others)} names. Order the columns alike."
        )
    return _named(queries), _named(gallery)


def _named(embeddings: EmbeddingSet) -> EmbeddingSet:
    return dataclasses.replace(
        embeddings, labels=embeddings.names, class_names=None
    )


def _as_set(embeddings: Any, labels: Any) -> EmbeddingSet:
    if isinstance(embeddings, str | os.PathLike):
        embeddings = load_embeddings(embeddings, need_labels=labels is None)
    if not isinstance(embeddings, EmbeddingSet):
        embeddings = EmbeddingSet(embeddings, labels)
    elif labels is not None:
        embeddings = dataclasses.replace(
            embeddings, labels=labels, class_names=None
        )
    if embeddings.labels is None:
        raise UsageError(
            "The images must have `labels` to be evaluated. Received: "
            "embeddings without. Give their classes as `labels`."
        )
    return embeddings
