"""Embeddings with the labels and ids of their images."""

import dataclasses
from numbers import Integral
from typing import Any, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import of_shape, one_of
from keras_dml.embeddings.checks import (
    as_array,
    as_embeddings,
    as_label_matrix,
    as_labels,
    as_unique_ids,
)
from keras_dml.errors import UsageError
from keras_dml.naming import shown
from keras_dml.roles import ROLES, has_gallery, query_rows, reference_rows

# Between the names of several labels of an image.
SEPARATOR = "|"
_SETS = (set, frozenset)
_LABELS = (str, bytes, Integral, *_SETS)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSet(Brief):
    """Holds embeddings with the labels, ids and roles of their images.

    Args:
        embeddings: Array `(rows, dim)` of real numbers; stored as float32.
        labels: 1D array `(rows,)` of integers or strings; if an image has
            several labels, a boolean or 0-1 matrix `(rows, classes)` or a list
            of sets. Defaults to `None`: unknown; such images can be searched
            but not evaluated.
        ids: 1D array `(rows,)` of unique integers or strings. Defaults to
            `None`: positions.
        role: 1D array `(rows,)` of `""`, `"query"` or `"gallery"`. Defaults
            to `None`: every image is both a query and a reference.
        class_names: Sequence of strings; integer labels are positions in it,
            and so are the columns of a matrix. Defaults to `None`.
        weights_hash: String, the hash of the weights that made the
            embeddings. Defaults to `None`: unknown.

    Raises:
        UsageError: If lengths differ, a value is not finite, an id repeats, a
            role is unknown, or the roles name only queries or only a gallery.

    Example:

    >>> pets = EmbeddingSet([[1.0, 0.0], [0.9, 0.1]], ["cat", "cat"])
    >>> len(pets)
    2
    """

    embeddings: Any
    labels: Any = None
    ids: Any = None
    role: Any = None
    class_names: Any = None
    weights_hash: str | None = None

    def __post_init__(self) -> None:
        rows = as_embeddings(self.embeddings, min_rows=0)
        labels = None if self.labels is None else _as_array(self.labels)
        if labels is not None and (
            labels.ndim not in (1, 2) or len(labels) != len(rows)
        ):
            raise UsageError(
                f"`labels` must have one row for each of the {len(rows)} "
                f"embeddings. Received: shape={labels.shape}. Give each "
                "embedding its class."
            )
        names = self.class_names
        values = {
            "embeddings": rows,
            "labels": labels,
            "ids": as_unique_ids(self.ids, len(rows)),
            "role": _roles(self.role, len(rows)),
            "class_names": None if names is None else _texts(names),
        }
        for name, value in values.items():
            # A frozen dataclass can only set its own fields this way.
            object.__setattr__(self, name, value)
        self._check_class_names()

    def _check_class_names(self) -> None:
        if self.class_names is None:
            return
        if self.labels is not None and self.labels.ndim == 2:
            of_shape("labels", self.labels, len(self), len(self.class_names))
            return
        if self.labels is None or self.labels.dtype.kind not in "iu":
            received = getattr(self.labels, "dtype", None)
            raise UsageError(
                "`labels` must be integers where `class_names` are given. "
                f"Received: dtype={received}. Leave the names out."
            )
        last = len(self.class_names) - 1
        if ((self.labels < 0) | (self.labels > last)).any():
            raise UsageError(
                f"`labels` must be in 0..{last}, the rows of `class_names`. "
                f"Received: {self.labels.min()}..{self.labels.max()}."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def queries(self) -> np.ndarray:
        """The rows that are queries."""
        return query_rows(self.role)

    @property
    def references(self) -> np.ndarray:
        """The rows of the gallery; all rows if there is no gallery."""
        return reference_rows(self.role)

    @property
    def has_gallery(self) -> bool:
        """Whether queries and references are different rows."""
        return has_gallery(self.role)

    @property
    def names(self) -> np.ndarray:
        """The name of the class of each row; empty if it is unknown.

        The names of several labels are joined by `|`.
        """
        if self.labels is None:
            return np.full(len(self), "")
        return label_names(self.labels, self.class_names)

    @property
    def groups(self) -> np.ndarray:
        """A number of each row, equal for rows of equal labels."""
        labels = self.labels
        if (
            labels is not None
            and labels.ndim == 1
            and labels.dtype.kind in "iu"
        ):
            return labels
        return np.unique(self.names, return_inverse=True)[1]

    def _brief_title(self) -> str:
        title = (
            f"EmbeddingSet: {len(self):,} embeddings of "
            f"{self.embeddings.shape[1]} dimensions"
        )
        if self.labels is not None and self.labels.ndim == 1:
            classes: set[Any] = set()
            for label in self.labels.tolist():
                classes |= label if isinstance(label, _SETS) else {label}
            title += f", {len(classes):,} classes"
        if self.has_gallery:
            title += f", {len(self.references):,} in the gallery"
        return title

    def select(self, rows: Any) -> Self:
        """Returns some of the rows.

        If only queries or only the gallery remain, they lose their roles.

        Args:
            rows: 1D integer or Boolean array, or a slice.

        Raises:
            UsageError: If `rows` are others, or there is no such row.
        """
        try:
            rows = np.arange(len(self))[rows]
        except IndexError as error:
            raise UsageError(
                f"`rows` must choose among {len(self)} rows by integers, a "
                f"slice or one boolean for each. Received: {shown(rows)}"
            ) from error
        of_shape("rows", rows, "rows", advice="Give several, as in `[3]`.")
        chosen = {
            field: getattr(self, field)[rows]
            for field in ("embeddings", "labels", "ids", "role")
            if getattr(self, field) is not None
        }
        if _one_sided(chosen["role"]):
            chosen["role"] = None
        return dataclasses.replace(self, **chosen)


def label_names(labels: np.ndarray, class_names: Any = None) -> np.ndarray:
    """Returns the labels of each row as text, joined by `|` if several.

    Args:
        labels: 1D array `(rows,)`, of sets if an image has several labels,
            or matrix `(rows, classes)`.
        class_names: Array of strings, the name of each label or column.
            Defaults to `None`: the labels, or the numbers of the columns.

    Example:

    >>> matrix = np.array([[1, 0, 1], [0, 1, 0]])
    >>> label_names(matrix, np.array(["cat", "dog", "sofa"])).tolist()
    ['cat|sofa', 'dog']
    """
    if labels.ndim == 1:
        return _texts_of(labels) if class_names is None else class_names[labels]
    if class_names is None:
        class_names = np.arange(labels.shape[1]).astype(str)
    return np.array(
        [SEPARATOR.join(class_names[row]) for row in labels > 0], str
    )


def split_names(names: np.ndarray) -> np.ndarray:
    """Returns the sets of labels whose names `label_names` joined.

    Args:
        names: 1D array of strings `(rows,)`.

    Returns:
        Object array `(rows,)` of frozensets.

    Example:

    >>> split_names(np.array(["dog", "", "dog"])).tolist()
    [frozenset({'dog'}), frozenset(), frozenset({'dog'})]
    """
    names = as_labels(names, names.size, "labels").astype(str)
    # Rows of the same labels share a set, which saves memory.
    unique, rows = np.unique(names, return_inverse=True)
    sets = [frozenset(one.split(SEPARATOR)) - {""} for one in unique.tolist()]
    return np.array(sets, object)[rows]


def _as_array(labels: Any) -> np.ndarray:
    wanted = "one integer or string a row, or one set of them a row"
    array = as_array(labels, "labels", wanted)
    if array.ndim == 2:
        return as_label_matrix(array, "labels")
    if array.ndim != 1:
        return array
    if array.dtype != object:
        return as_labels(labels, array.size, "labels")
    odd = [x for x in array if not isinstance(x, _LABELS)]
    if odd:
        raise UsageError(
            "`labels` must be integers or strings, or sets of them for images "
            f"of several labels. Received: {shown(odd[0])} among them."
        )
    # An empty one may be a part of rows whose labels are sets.
    if not array.size or any(isinstance(x, _SETS) for x in array):
        return array
    return as_labels(array, array.size, "labels")


def _texts_of(labels: np.ndarray) -> np.ndarray:
    if labels.dtype != object:
        return labels.astype(str)
    texts = [
        SEPARATOR.join(sorted(map(str, one)))
        if isinstance(one, _SETS)
        else str(one)
        for one in labels.tolist()
    ]
    return np.array(texts, str)


def _roles(role: Any, num_rows: int) -> np.ndarray:
    if role is None:
        return np.full(num_rows, "", "<U7")
    role = as_labels(role, num_rows, "role")
    for one in np.unique(role).tolist():
        one_of("role", one, ROLES)
    if _one_sided(role):
        raise UsageError(
            "`role` must name queries and a gallery, or neither. Received: "
            f"{sorted(set(role.tolist()))}. Add what is missing, or leave "
            "`role` out."
        )
    return role.astype("<U7")


def _one_sided(role: np.ndarray) -> bool:
    """Returns whether roles name queries but no gallery, or only a gallery."""
    gallery = role == "gallery"
    return bool(
        gallery.all() or ((role == "query").any() and not gallery.any())
    )


def _texts(names):
    names = np.asarray(names)
    of_shape("class_names", names, "classes")
    return as_labels(names, len(names), "class_names").astype(str)
