"""How to export an embedder: every choice of a caller in one object."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_dml.checks import one_of, positive_integer
from keras_dml.data.decoding import MAX_PIXELS
from keras_dml.errors import UsageError

QUANTIZATIONS = ("none", "float16", "dynamic_range", "int8")
INDEXES = ("auto", "exact", "scann")


@dataclasses.dataclass(frozen=True, eq=False)
class References:
    """The images that a phone searches, to be written next to a LiteRT file.

    Args:
        batches: Arrays `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation; something that can be iterated once
            per artefact, such as a list.
        labels: What to tell the user, one text per image.
        ids: Which image it was, one text per image.
    """

    batches: Iterable[np.ndarray]
    labels: Sequence[str]
    ids: Sequence[str]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ExportOptions:
    """How to export an embedder.

    Args:
        quantize: Of LiteRT: any of `"none"`, `"float16"`, `"dynamic_range"`
            and `"int8"`, one artefact each. Defaults to `("none",)`.
        dynamic_batch: Of LiteRT: whether it takes any number of images at
            once. Some accelerators of phones need a fixed one. Defaults to
            `False`, one image.
        calibration: For `"int8"`: uint8 images `(height, width, channels)` of
            the training set, resized as in the evaluation; 200 are plenty.
            Defaults to `None`; a run gives its own.
        references: Of LiteRT: `References` whose embeddings are written
            next to the model, to search on the device; `True` for the test
            references of a run. Defaults to `False`.
        with_index: Of the SavedModel: whether it searches a gallery by
            itself. Defaults to `False`.
        index: How it searches: `"exact"`, in plain TensorFlow; `"scann"`,
            approximate, which needs ScaNN wherever the model is loaded; or
            `"auto"`, exact below 20,000 references and ScaNN from there on.
            Defaults to `"auto"`.
        gallery: What it searches: an `EmbeddingSet` made by the embedder. For
            a run also a source, all images of which are embedded, or a file
            or folder of embeddings made by this run's weights. Defaults to
            `None`, the test references of a run.
        max_k: Integer, the most neighbors that a request may ask for.
            Defaults to `100`.
        max_pixels: Integer, the largest image file that the SavedModel
            decodes. Defaults to 89,478,485, as in training.
        max_drop: Float, the largest drop of R@1 or MAP@R that is allowed,
            such as `0.01`; of R@1 through an index, against exact search,
            too. Defaults to `None`: any is allowed.
        resize: Integer, the shorter side in pixels to which the evaluation
            resizes before it crops. Defaults to the size of the embedder's
            images.
        squash: Whether the evaluation resizes both sides to it. Defaults to
            `False`.
        metadata: JSON-able facts for the manifests, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to write next to other things, and to replace a folder
            that is not an export. Defaults to `False`.

    Raises:
        UsageError: An option is out of its range, or a gallery is given
            without an index.

    Example:

    >>> ExportOptions(quantize="int8", max_drop=0.01).quantize
    ('int8',)
    """

    quantize: str | Sequence[str] = ("none",)
    dynamic_batch: bool = False
    calibration: Iterable[np.ndarray] | None = None
    references: References | bool = False
    with_index: bool = False
    index: str = "auto"
    gallery: Any = None
    max_k: int = 100
    max_pixels: int = MAX_PIXELS
    max_drop: float | None = None
    resize: int | None = None
    squash: bool = False
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    force: bool = False

    def __post_init__(self) -> None:
        one = isinstance(self.quantize, str)
        quantize = (self.quantize,) if one else tuple(self.quantize)
        # A frozen dataclass can only set its own fields this way.
        object.__setattr__(self, "quantize", quantize)
        for name in quantize:
            one_of("quantize", name, QUANTIZATIONS)
        one_of("index", self.index, INDEXES)
        positive_integer("max_k", self.max_k)
        if self.max_drop is not None and self.max_drop < 0:
            raise UsageError(
                f"`max_drop` must be at least 0. Received: {self.max_drop}"
            )
        if self.gallery is not None and not self.with_index:
            raise UsageError(
                "`gallery` is what the index holds. Received: a gallery "
                "without an index. Pass `with_index=True` as well."
            )

    @classmethod
    def of(
        cls, options: "ExportOptions | None", changes: Mapping[str, Any]
    ) -> "ExportOptions":
        """The options with some of them changed.

        Args:
            options: `ExportOptions`, or `None` for the defaults.
            changes: Dict of arguments.
        """
        return dataclasses.replace(options or cls(), **changes)
