"""The list of images that every reader returns."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import of_shape
from keras_dml.embeddings.embedding_set import label_names
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import LabelSets, as_label_sets

# The fields accept lists and always store a numpy array.
Array = Any
# The fields with one row for each image, and the dtypes of some.
DTYPES = {
    **{"ids": str, "paths": str, "group": np.int64, "box": np.float64},
    **{"teacher": np.float32, "turn": np.int32},
}
ROWS = ("labels", "images", "split", "role", *DTYPES)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Manifest(Brief):
    """Lists the images of a data set with their labels and their split.

    Row `i` of every array describes image `i`. The pixels are either files
    (`paths`) or one array in memory (`images`), never both.

    Args:
        name: String, the data set's name.
        labels: int64 array `(n,)`, an index into `class_names`; or, if an
            image has several labels, a boolean matrix `(n, classes)`.
        class_names: Tuple of strings, one per class.
        ids: String array `(n,)`, unique, and the same on every machine.
        paths: String array `(n,)`, the files. Defaults to `None`.
        images: uint8 array `(n, height, width, channels)`. Defaults to
            `None`.
        split: String array `(n,)` of `""`, `"train"` or `"test"`. Defaults
            to `""` for all rows.
        role: String array `(n,)` of `""`, `"query"` or `"gallery"`. Defaults
            to `""` for all rows: every test image is both query and gallery.
        group: int64 array `(n,)`, a coarser class. Defaults to `None`.
        box: float array `(n, 4)`, the object's left, top, right and bottom
            in pixels. Defaults to `None`.
        teacher: float32 array `(n, dim)`, embeddings of another network that
            training imitates. Defaults to `None`.
        turn: int32 array `(n,)`, how many quarter turns counterclockwise an
            image is shown with. Defaults to `None`, as it is.
        seen: Boolean, whether test classes are seen in training. Defaults to
            `False`.
        partial: Boolean, whether images of the published set are missing.
            Defaults to `False`.

    Raises:
        ValueError: If lengths, types or shapes do not agree, ids repeat, a
            label has no class name, or a split or role is unknown.

    Example:

    >>> manifest = Manifest(
    ...     name="fruit",
    ...     labels=[0, 0, 1],
    ...     class_names=["apple", "pear"],
    ...     ids=["a.jpg", "b.jpg", "c.jpg"],
    ...     paths=["fruit/a.jpg", "fruit/b.jpg", "fruit/c.jpg"],
    ... )
    >>> len(manifest), manifest.num_classes
    (3, 2)
    """

    name: str
    labels: Array
    class_names: Sequence[str]
    ids: Array
    paths: Array = None
    images: Array = None
    split: Array = None
    role: Array = None
    group: Array = None
    box: Array = None
    teacher: Array = None
    turn: Array = None
    seen: bool = False
    partial: bool = False

    def __post_init__(self):
        labels = np.asarray(self.labels)
        several = labels.ndim == 2
        if labels.size and labels.dtype.kind not in ("b" if several else "iu"):
            raise ValueError(
                "`labels` must be integers, or a boolean matrix. "
                f"Received: labels with dtype={labels.dtype}"
            )
        count = len(labels)
        values = {
            "labels": labels.astype(bool if several else np.int64),
            "class_names": tuple(str(name) for name in self.class_names),
            "split": _words("split", self.split, count, ("train", "test")),
            "role": _words("role", self.role, count, ("query", "gallery")),
        }
        if self.images is not None:
            values["images"] = np.asarray(self.images)
        for field, dtype in DTYPES.items():
            if getattr(self, field) is not None:
                values[field] = np.asarray(getattr(self, field), dtype)
        for field, value in values.items():
            object.__setattr__(self, field, value)
        self._check()

    def _check(self):
        count = len(self)
        for field, value in self.columns().items():
            if len(value) != count:
                raise ValueError(
                    f"`{field}` must have one row per label. Received: "
                    f"{len(value)} rows for {count} labels."
                )
        if (self.paths is None) == (self.images is None):
            raise ValueError(
                "Exactly one of `paths` and `images` must be given. Received: "
                f"paths={self.paths is not None}, "
                f"images={self.images is not None}"
            )
        if self.images is not None and (
            self.images.ndim != 4
            or self.images.dtype != np.uint8
            or self.images.shape[-1] not in (1, 3)
        ):
            raise ValueError(
                "`images` must be a uint8 array of shape (n, height, width, "
                "1 or 3). Received: images with dtype="
                f"{self.images.dtype}, shape={self.images.shape}"
            )
        if self.box is not None:
            of_shape("box", self.box, count, 4)
        if self.has_label_sets:
            of_shape("labels", self.labels, count, len(self.class_names))
        elif count and not (
            self.labels.min() >= 0 and self.labels.max() < len(self.class_names)
        ):
            raise ValueError(
                f"`labels` must be in 0..{len(self.class_names) - 1}, the "
                "rows of `class_names`. Received: labels in "
                f"{self.labels.min()}..{self.labels.max()}"
            )
        unique, repeats = np.unique(self.ids, return_counts=True)
        if len(unique) != count:
            raise ValueError(
                "`ids` must be unique, for a query is told from its "
                f"references by id. Received: {str(unique[repeats > 1][0])!r} "
                f"{repeats.max()} times."
            )

    def _brief_title(self) -> str:
        return (
            f"Manifest {self.name}: {len(self):,} images of "
            f"{self.num_classes:,} classes"
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def file_names(self) -> list[bytes]:
        """The paths as bytes, for TensorFlow: not every name is UTF-8."""
        return [os.fsencode(path) for path in self.paths.tolist()]

    @property
    def num_classes(self) -> int:
        """Number of classes that have at least one row."""
        return len(np.unique(self.label_sets.values))

    @property
    def teacher_dim(self) -> int | None:
        """Size of the embeddings of the teacher, if there is one."""
        return None if self.teacher is None else self.teacher.shape[1]

    @property
    def has_label_sets(self) -> bool:
        """Whether an image may have several labels."""
        return self.labels.ndim == 2

    @property
    def label_sets(self) -> LabelSets:
        """Every label of every row, as `as_label_sets` returns them."""
        return as_label_sets(self.labels, len(self), "labels")

    @property
    def names(self) -> np.ndarray:
        """The name of the class of each row; several are joined by `|`."""
        return label_names(self.labels, np.asarray(self.class_names, str))

    def targets(self, rows) -> np.ndarray:
        """Returns what a loss compares a batch with.

        Args:
            rows: Integer array `(batch,)`.

        Returns:
            The labels, int64 `(batch,)`; or, if an image has several, which
            pairs of the batch share one, boolean `(batch, batch)`.
        """
        own = self.labels[rows]
        return own @ own.T if self.has_label_sets else own

    def select(self, rows) -> "Manifest":
        """Returns the given rows; labels and class names stay as they are.

        Args:
            rows: Integer or Boolean array.
        """
        rows = np.asarray(rows)
        if rows.size == 0:
            rows = rows.astype(np.int64)
        chosen = {field: value[rows] for field, value in self.columns().items()}
        return dataclasses.replace(self, **chosen)

    def columns(self) -> dict[str, np.ndarray]:
        """Returns the fields that have one row for each image, by name."""
        values = {field: getattr(self, field) for field in ROWS}
        return {k: value for k, value in values.items() if value is not None}

    def part(self, split: str) -> "Manifest":
        """Returns the rows of a split, relabeled.

        Of images with several labels, the test split keeps those labels that
        no training image has, unless test classes are `seen`.

        Args:
            split: `"train"` or `"test"`.

        Raises:
            UsageError: If no row belongs to the split.
        """
        rows = np.flatnonzero(self.split == split)
        if not len(rows):
            advice = "Give at least one class to each split."
            if self.has_label_sets:
                advice = (
                    "An image with a label of a test class does not train: "
                    "give fewer classes to the test, or say for each image "
                    "whether it trains."
                )
            raise UsageError(
                f"No image of {self.name!r} belongs to the {split} split. "
                f"Received: splits {sorted(set(self.split.tolist()))}. {advice}"
            )
        part = self.select(rows)
        if split == "test" and self.has_label_sets and not self.seen:
            part = part.without_classes_of(self.select(self.split == "train"))
        return part.relabeled()

    def without_classes_of(self, other: "Manifest") -> "Manifest":
        """Takes from label sets those labels that another part has.

        Single labels stay as they are.

        Args:
            other: `Manifest` of other rows, with the same classes.
        """
        if not self.has_label_sets:
            return self
        labels = self.labels & ~other.labels.any(axis=0)
        return dataclasses.replace(self, labels=labels)

    def relabeled(self) -> "Manifest":
        """Renumbers the classes that have rows 0..C-1, in label order."""
        if self.has_label_sets:
            classes = np.unique(self.label_sets.values)
            labels = self.labels[:, classes]
        else:
            classes, labels = np.unique(self.labels, return_inverse=True)
        names = tuple(self.class_names[label] for label in classes.tolist())
        return dataclasses.replace(self, labels=labels, class_names=names)

    def checksum(self) -> str:
        """Returns the SHA-256 of ids and labels, which identifies the list."""
        digest = hashlib.sha256()
        for identity, label in zip(
            self.ids.tolist(), label_names(self.labels).tolist(), strict=True
        ):
            digest.update(f"{identity}\0{label}\n".encode())
        return digest.hexdigest()


def _words(field, value, count, words):
    """Fills a missing column with "" and raises if a word is unknown."""
    if value is None:
        return np.full(count, "", dtype="<U7")
    value = np.asarray(value, dtype=str)
    unknown = sorted(set(value.tolist()) - {"", *words})
    if unknown:
        raise ValueError(
            f"`{field}` must hold '', {words[0]!r} or {words[1]!r}. "
            f"Received: {unknown[0]!r}"
        )
    return value.astype("<U7")
