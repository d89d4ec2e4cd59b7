"""What the losses on class logits share: the checks of their input."""

import abc

import keras
from keras import ops

from keras_dml.losses.checks import (
    check_integer_labels,
    matching_labels,
)


class LogitsLoss(keras.losses.Loss, abc.ABC):
    """Base of losses on integer labels and the logits of every class.

    Subclasses implement `logits_loss`. The result has one entry per row, so
    that reduction, sample weights and `tf.distribute` treat it rightly, and
    is computed in float32 under every dtype policy.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row. Its range cannot be checked here.
        y_pred: Float tensor `(batch, classes)`, the logits.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If labels are not integers, are one-hot, or do not fit the
            logits.
    """

    # See `keras_dml.losses.INPUTS`.
    takes = "logits"
    # Whether `y_pred` may be `(batch, classes, centres)`.
    takes_centres = False

    @abc.abstractmethod
    def logits_loss(self, labels, logits):
        """Returns one loss per row of `logits`; `labels` is int32."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        # The base class casts labels to float, which hides what they were.
        check_integer_labels(y_true, self.name)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        labels = matching_labels(
            y_true, y_pred, self.name, centres=self.takes_centres
        )
        return self.logits_loss(ops.cast(labels, "int32"), y_pred)
