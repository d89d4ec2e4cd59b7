"""Embeddings with the labels and ids of their images."""

import dataclasses
from typing import Any, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import of_shape, one_of
from keras_dml.embeddings.checks import (
    as_embeddings,
    as_labels,
    as_unique_ids,
)
from keras_dml.errors import UsageError

ROLES = ("", "query", "gallery")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSet(Brief):
    """Holds embeddings with the labels, ids and roles of their images.

    Args:
        embeddings: Array `(rows, dim)` of real numbers; stored as float32.
        labels: 1D array `(rows,)` of integers or strings, or a 0-1 matrix
            `(rows, classes)` if an image has several labels. Defaults to
            `None`: unknown; such images can be searched but not evaluated.
        ids: 1D array `(rows,)` of unique integers or strings. Defaults to
            `None`: positions.
        role: 1D array `(rows,)` of `""`, `"query"` or `"gallery"`. Defaults
            to `None`: every image is both a query and a reference.
        class_names: Sequence of strings; integer labels are positions in it.
            Defaults to `None`.
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
        labels = None if self.labels is None else np.asarray(self.labels)
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
        return np.flatnonzero(self.role != "gallery")

    @property
    def references(self) -> np.ndarray:
        """The rows of the gallery; all rows if there is no gallery."""
        gallery = np.flatnonzero(self.role == "gallery")
        return gallery if len(gallery) else np.arange(len(self))

    @property
    def has_gallery(self) -> bool:
        """Whether queries and references are different rows."""
        return bool((self.role == "gallery").any())

    @property
    def names(self) -> np.ndarray:
        """The name of the class of each row; empty if it is unknown."""
        if self.labels is None:
            return np.full(len(self), "")
        if self.class_names is None:
            return self.labels.astype(str)
        return self.class_names[self.labels]

    def _brief_title(self) -> str:
        title = (
            f"EmbeddingSet: {len(self):,} embeddings of "
            f"{self.embeddings.shape[1]} dimensions"
        )
        if self.labels is not None and self.labels.ndim == 1:
            title += f", {len(set(self.labels.tolist())):,} classes"
        if self.has_gallery:
            title += f", {len(self.references):,} in the gallery"
        return title

    def select(self, rows: Any) -> Self:
        """Returns some of the rows.

        If only queries or only the gallery remain, they lose their roles.

        Args:
            rows: Integer or Boolean array, or a slice.
        """
        chosen = {
            field: getattr(self, field)[rows]
            for field in ("embeddings", "labels", "ids", "role")
            if getattr(self, field) is not None
        }
        if _one_sided(chosen["role"]):
            chosen["role"] = None
        return dataclasses.replace(self, **chosen)


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
