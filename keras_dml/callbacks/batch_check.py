"""Checks the labels of batches."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_dml.errors import UsageError


class BatchCheck(keras.callbacks.Callback):
    """Checks the labels of the batches of an epoch before the epoch starts.

    A compiled training step cannot check them, because it loses errors. If a
    batch has no two rows of one class, a pair loss finds no positive pair; the
    callback warns once and names the batch. It raises if a label is out of
    range.

    Args:
        labels: Function of the epoch that returns the labels of its batches:
            integer arrays `(batch,)`, or matrices `(batch, batch)` that are
            positive where two rows belong together.
        num_classes: Integer, labels run from 0 to `num_classes - 1`. Defaults
            to `None`: the callback does not check the range.
        positives: Boolean, whether every batch should hold a positive pair.
            Proxy losses need none. Defaults to `True`.
        warn: Function that takes a message. Defaults to `warnings.warn`.

    Raises:
        UsageError: At the start of an epoch, if a label is out of range.

    Example:

    ```python
    check = BatchCheck(
        lambda epoch: [y for _, y in batches.take(10)], num_classes=98
    )
    model.fit(batches, callbacks=[check])
    ```
    """

    def __init__(
        self,
        labels: Callable[[int], Iterable[Any]],
        num_classes: int | None = None,
        positives: bool = True,
        warn: Callable[[str], Any] = warnings.warn,
    ) -> None:
        super().__init__()
        self.labels = labels
        self.num_classes = num_classes
        self.positives = positives
        self.warn = warn
        self._warned = False

    def on_epoch_begin(self, epoch, logs=None):
        if self.num_classes is None and (self._warned or not self.positives):
            return
        for number, batch in enumerate(self.labels(epoch)):
            labels = np.asarray(ops.convert_to_numpy(batch))
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = labels[:, 0]
            if labels.ndim == 1:
                self._check_range(labels, epoch, number)
            if self.positives and not self._warned:
                self._check_positives(labels, epoch, number)

    def _check_range(self, labels, epoch, number):
        if self.num_classes is None or labels.size == 0:
            return
        least, most = labels.min(), labels.max()
        if least < 0 or most >= self.num_classes:
            raise UsageError(
                f"Labels must lie between 0 and {self.num_classes - 1}. "
                f"Received: labels from {least} to {most} in batch {number} of "
                f"epoch {epoch}. Number the training classes from 0 without "
                "gaps."
            )

    def _check_positives(self, labels, epoch, number):
        if _has_positive_pair(labels):
            return
        self._warned = True
        self.warn(
            f"Batch {number} of epoch {epoch} holds {len(labels)} rows and no "
            "positive pair: a pair loss learns nothing from it. Sample "
            "several images of each class, in a recipe with `sampling: {kind: "
            "balanced, images: 4}`, or with "
            "`keras_dml.data.sampling.balanced_batches`."
        )


def _has_positive_pair(labels):
    if labels.ndim == 1:
        return len(np.unique(labels)) < len(labels)
    others = np.eye(*labels.shape) == 0
    # A pair of -1 does not count.
    return bool((labels[others] > 0).any())
