"""Defines all options of an export in one object."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import (
    boolean,
    not_negative,
    one_of,
    optional,
    positive_integer,
    require,
)
from keras_dml.data.decoding import MAX_PIXELS
from keras_dml.errors import UsageError, reason_of

QUANTIZATIONS = ("none", "float16", "dynamic_range", "int8")
INDEXES = ("auto", "exact", "scann")
# What only an export with an index takes.
OF_AN_INDEX = ("index", "gallery", "max_k")
# The fields of a manifest that the formats write.
OWN_FIELDS = (
    *("made_by", "version", "format", "image", "embedding", "file"),
    *("quantize", "dynamic_batch", "ops", "opset"),
    *("max_pixels", "index", "endpoints"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class References:
    """The images that a device searches, written next to a LiteRT file.

    Args:
        batches: Arrays `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation. The iterable is read once per
            artifact, so give a list or another iterable that can be read
            again.
        labels: The texts to show to the user, one per image.
        ids: The ids of the images, one text per image.
    """

    batches: Iterable[np.ndarray]
    labels: Sequence[str]
    ids: Sequence[str]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ExportOptions(Brief):
    """How to export an embedder.

    Args:
        quantize: For LiteRT: any of `"none"`, `"float16"`, `"dynamic_range"`
            and `"int8"`, one artifact each. Defaults to `"none"`.
        dynamic_batch: For LiteRT: whether the model takes any number of
            images at once. Some accelerators of phones need a fixed number.
            Defaults to `False`, one image.
        calibration: For `"int8"`: uint8 images `(height, width, channels)` of
            the training set, resized as in the evaluation; 200 images are
            enough. Defaults to `None`; for a run, some of its training
            images.
        references: For LiteRT: whether to write the test references of a run
            next to the model, to search on the device. In Python also
            `References`. Defaults to `False`.
        with_index: For the SavedModel: whether the model can search a
            gallery. Defaults to `False`.
        index: The method of the search: `"exact"`, in plain TensorFlow;
            `"scann"`, approximate, which needs ScaNN to load the model; or
            `"auto"`, ScaNN from 20,000 references on if it is installed, else
            exact. Defaults to `"auto"`.
        gallery: The references to search: a source, all images of which are
            embedded, or a file or folder of embeddings made by this run's
            weights. In Python also an `EmbeddingSet` made by the embedder,
            the only form without a run. Defaults to `None`, the test
            references of a run.
        max_k: The most neighbors that a request may ask for. Defaults to
            `100`.
        max_pixels: Number of pixels of the largest image file that the
            SavedModel decodes. Defaults to 89,478,485, as in training.
        max_drop: The largest allowed drop of R@1 or MAP@R, such as `0.01`.
            With an index, it also limits the drop of R@1 against exact
            search. Defaults to `None`, no limit.
        resize: Integer, the shorter side in pixels to which the evaluation
            resizes before it crops. Defaults to `None`, that of the run, or
            the size of the embedder's images.
        squash: Whether the evaluation resizes both sides to `resize`.
            Defaults to `None`, that of the run, or `False`.
        metadata: Dict of JSON-able facts for the manifests, such as recipe,
            metrics and labels, under other names than the fields that the
            formats write. Defaults to none.
        force: Whether to write into a folder that holds other files, and to
            replace a folder that is not an export. Defaults to `False`.

    Raises:
        UsageError: If an option is out of its range, `index`, `gallery` or
            `max_k` is given without `with_index`, or a manifest cannot hold
            the metadata.

    Example:

    >>> ExportOptions(quantize="int8", max_drop=0.01).quantize
    ('int8',)
    """

    quantize: str | Sequence[str] = "none"
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
    squash: bool | None = None
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    force: bool = False

    def __post_init__(self) -> None:
        one = isinstance(self.quantize, str)
        quantize = (self.quantize,) if one else tuple(self.quantize)
        # The only way to set a field of a frozen dataclass.
        object.__setattr__(self, "quantize", quantize)
        wanted = f"one or more of {', '.join(QUANTIZATIONS)}"
        require(quantize, "quantize", wanted, self.quantize)
        for name in quantize:
            one_of("quantize", name, QUANTIZATIONS)
        one_of("index", self.index, INDEXES)
        if not isinstance(self.references, References):
            advice = "Or give the images as `References`."
            boolean("references", self.references, advice)
        positive_integer("max_k", self.max_k)
        # Requests give `k` as int32.
        require(self.max_k < 2**31, "max_k", "below 2**31", self.max_k)
        positive_integer("max_pixels", self.max_pixels)
        optional(positive_integer, "resize", self.resize)
        optional(not_negative, "max_drop", self.max_drop)
        self._check_metadata()
        self._check_index()

    def _check_index(self) -> None:
        for name in () if self.with_index else OF_AN_INDEX:
            if getattr(self, name) != getattr(type(self), name):
                raise UsageError(
                    f"`{name}` is for an index. Received: `{name}` without "
                    "one. Pass `with_index=True` as well."
                )

    def _check_metadata(self) -> None:
        mapping = isinstance(self.metadata, Mapping)
        require(mapping, "metadata", "a dict", self.metadata)
        own = [repr(key) for key in self.metadata if key in OWN_FIELDS]
        if own:
            raise UsageError(
                "`metadata` must be facts without the manifest's own fields, "
                f"{', '.join(OWN_FIELDS)}. Received: {', '.join(own)}. Rename "
                "what you add."
            )
        try:
            json.dumps({**self.metadata})
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                "`metadata` must be facts that JSON can hold. Received: "
                f"{reason_of(error)}. Convert arrays to lists."
            ) from error

    @classmethod
    def of(
        cls, options: "ExportOptions | None", changes: Mapping[str, Any]
    ) -> "ExportOptions":
        """Returns a copy of the options with some of them changed.

        Args:
            options: `ExportOptions`, or `None` for the defaults.
            changes: Dict of arguments.
        """
        return dataclasses.replace(options or cls(), **changes)
