"""Base classes of all losses: arguments, input and checks of the input."""

import abc
import re
import warnings

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import arguments_of
from keras_dml.checks import HALF, require
from keras_dml.ops.labels import (
    among_classes,
    known_values,
    merged_by_float32,
    refuse,
    within_classes,
)
from keras_dml.ops.unit_lengths import look_like_embeddings

# What TensorFlow takes as the name of operations. Keras checks it too late: a
# scope that was refused stays open, and the names of all that follow are wrong.
_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


class Loss(keras.losses.Loss):
    """Base of all losses: takes integer labels, never uses half precision.

    The constructor of a subclass names its arguments, stores each in an
    attribute of the same name, and passes the others on. `get_config` reads
    these attributes.

    Args:
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String of letters, digits and `_.-`. Defaults to `None`, the name
            of the file of the loss, by which `keras_dml.losses.get` finds it.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`, even under a
            mixed-precision policy, and float32 where that is a half precision.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row, above `-2**24` and below `2**24`: Keras casts labels to
            float32, which merges larger ones. The loss of these is NaN in a
            step that cannot raise: one on an accelerator, or compiled by XLA.
        y_pred: Float tensor, one row for each label.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If `dtype` is a half precision, `name` holds other
            characters, or labels are not integers or too large.
        tf.errors.InvalidArgumentError: If labels are too large, in a compiled
            step on a CPU.

    Example:

    ```python
    class Squared(LogitsLoss):
        def __init__(self, factor=1.0, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

        def logits_loss(self, labels, logits):
            return self.factor * softmax_loss(labels, logits) ** 2
    ```
    """

    # The head in front of the loss, one of `keras_dml.models.HEADS`; `None` for
    # a loss that combines others.
    takes: str | None = None
    # Whether `y_pred` has one column for each class, in order, and no others.
    column_per_class = False
    label_dtypes: tuple[str, ...] = ("int", "uint")
    labels_in_words = "integer class labels of shape (batch,)"

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        if dtype is None:
            dtype = keras.config.floatx()
            dtype = "float32" if dtype in HALF else dtype
        policy = keras.dtype_policies.get(dtype)
        if policy.compute_dtype in HALF:
            raise ValueError(
                "`dtype` of a loss must not be a half precision: labels would "
                "be rounded and exponentials overflow. A mixed-precision model "
                'works with a float32 loss; pass `dtype="float32"` or nothing. '
                f"Received: dtype={policy.compute_dtype}"
            )
        require(
            name is None or _SCOPE.fullmatch(str(name)),
            "name",
            "letters, digits and `_.-`, and must not begin with `_` or `-`",
            name,
        )
        package, _, key = type(self).__module__.rpartition(".")
        super().__init__(
            name=name or (key if package == __package__ else None),
            reduction=reduction,
            dtype=policy.compute_dtype,
        )

    def __call__(self, y_true, y_pred, sample_weight=None):
        # Keras would take each number of a list for a tensor of its own.
        y_true, y_pred = (
            ops.convert_to_tensor(value) if isinstance(value, list) else value
            for value in (y_true, y_pred)
        )
        # Check now: Keras casts labels to float later, which hides their dtype.
        # Do not check under a strategy: there Keras builds the model with the
        # mean of the labels over the replicas, which is a float.
        if distribute.num_replicas() == 1:
            if 0 in y_pred.shape[:1]:
                raise ValueError(
                    f"`y_pred` of the loss {self.name!r} must have at least "
                    f"one row. Received: y_pred.shape={tuple(y_pred.shape)}"
                )
            dtype = ops.convert_to_tensor(y_true).dtype
            dtype = keras.backend.standardize_dtype(dtype)
            if not dtype.startswith(self.label_dtypes):
                raise ValueError(
                    f"`y_true` of the loss {self.name!r} must be "
                    f"{self.labels_in_words}. Received: y_true of dtype "
                    f"{dtype}. Cast the labels in the input pipeline, for "
                    'example with `astype("int32")`.'
                )
        merged = self._refuse_merged(y_true)
        loss = super().__call__(y_true, y_pred, sample_weight)
        if not has_column_per_class(self):
            loss = loss * _nan_if_any(y_pred, loss.dtype)
        return loss if merged is None else ops.where(merged, float("nan"), loss)

    def _refuse_merged(self, y_true):
        """Raises for classes that float32 merges.

        Returns:
            Boolean scalar tensor, whether there are such classes in a step
            that may not raise; `None` where the labels are known, or a matrix.
        """
        known = known_values(y_true)
        labels = y_true if known is None else known
        if len(labels.shape) == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if len(labels.shape) != 1:
            return None
        merged = merged_by_float32(labels)
        refuse(
            labels,
            merged,
            f"`y_true` of the loss {self.name!r} must lie strictly between "
            "-2**24 and 2**24, beyond which float32 merges classes",
            "Number the classes with `np.unique(labels, return_inverse=True)`.",
        )
        return ops.any(merged) if known is None else None

    def get_config(self):
        return keras.saving.serialize_keras_object(
            {name: getattr(self, name) for name in arguments_of(type(self))}
        )

    def _flat_labels(self, y_true, y_pred):
        """Returns labels without an axis of size 1, and the shapes as text."""
        received = (
            f"Received: y_true.shape={tuple(y_true.shape)}, "
            f"y_pred.shape={tuple(y_pred.shape)}"
        )
        if not (len(y_true.shape) and len(y_pred.shape)):
            raise ValueError(
                f"`y_true` and `y_pred` of the loss {self.name!r} must have "
                f"a row for each image. {received}"
            )
        if len({y_true.shape[0], y_pred.shape[0]} - {None}) > 1:
            raise ValueError(
                f"`y_true` and `y_pred` of the loss {self.name!r} must have "
                f"the same number of rows. {received}"
            )
        if len(y_true.shape) == 2 and y_true.shape[1] == 1:
            y_true = ops.reshape(y_true, (-1,))
        return y_true, received


def _nan_if_any(y_pred, dtype):
    """Returns 1, or NaN if an entry is NaN: a factor reaches the gradient too.

    Comparisons with NaN choose no pair, so that a loss on pairs would be 0.
    """
    lost = ops.any(ops.isnan(y_pred))
    return ops.cast(ops.where(lost, float("nan"), 1.0), dtype)


def has_column_per_class(loss: keras.losses.Loss) -> bool:
    """Returns whether a loss takes one column per class, as Keras losses do."""
    return getattr(loss, "column_per_class", True)


class LogitsLoss(Loss, abc.ABC):
    """Base of losses on integer labels and one column for each class.

    Subclasses implement `logits_loss`. It returns one entry per row, which
    reduction, sample weights and `tf.distribute` need. The loss computes in
    float32 under every dtype policy.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row, from 0 to `classes - 1`. The loss of other labels is NaN in a
            step that cannot raise: one on an accelerator, or compiled by XLA.
        y_pred: Float tensor `(batch, classes)`, or `(batch, classes, centers)`
            for a loss that takes several centers.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If labels are not integers, are one-hot, or do not fit the
            logits.
        tf.errors.InvalidArgumentError: If a label has no column, in a
            compiled step on a CPU; otherwise this is a `ValueError` as well.

    Example:

    >>> class Misses(LogitsLoss):
    ...     def logits_loss(self, labels, logits):
    ...         return 1 - ops.take_along_axis(logits, labels[:, None], 1)[:, 0]
    >>> float(Misses()(np.array([1]), np.array([[0.2, 0.5]])))
    0.5
    """

    takes: str | None = "logits"
    column_per_class = True
    # Whether `y_pred` may be `(batch, classes, centers)`.
    takes_centers = False

    @abc.abstractmethod
    def logits_loss(self, labels, logits):
        """Returns one loss per row of `logits`; `labels` is int32."""

    def call(self, y_true, y_pred):
        labels, received = self._flat_labels(y_true, y_pred)
        rank = len(y_pred.shape)
        if rank != 2 and not (self.takes_centers and rank == 3):
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be logits of shape "
                f"(batch, classes). {received}. Several centers per class need "
                "a loss that reduces them."
            )
        if len(labels.shape) != 1:
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be integer class "
                f"labels of shape (batch,), not one-hot rows. {received}. Take "
                "the `argmax` of one-hot labels."
            )
        labels = ops.cast(labels, "int32")
        if not self.column_per_class:
            return self.logits_loss(labels, y_pred)
        labels = self._checked_labels(labels, y_pred)
        right = among_classes(labels, ops.shape(y_pred)[1])
        loss = self.logits_loss(labels, y_pred)
        return ops.where(right, loss, float("nan"))

    def _checked_labels(self, labels, y_pred):
        """Raises for labels without a column, and warns of embeddings."""
        columns = y_pred.shape[1]
        if columns is None:
            return labels
        labels = within_classes(
            labels,
            columns,
            f"`y_true` of the loss {self.name} must lie between 0 and "
            f"{columns - 1}, for `y_pred` has {columns} columns",
            f"The loss takes {self.takes or 'similarities'}, one column for "
            "each class, not embeddings: put `keras_dml.layers.Proxies` in "
            "front.",
        )
        if self.takes == "similarities" and look_like_embeddings(y_pred):
            warnings.warn(
                f"`y_pred` of the loss {self.name!r} looks like embeddings, as "
                "all rows have length 1. It must be similarities, the output "
                "of `keras_dml.layers.Proxies(num_classes)`.",
                stacklevel=2,
            )
        return labels
