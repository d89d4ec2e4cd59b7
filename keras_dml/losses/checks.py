"""Errors for labels, logits, numbers and dtypes that cannot be meant."""

import keras
from keras import ops

from keras_dml import distribute

HALF = ("float16", "bfloat16")


def full_precision(dtype) -> str:
    """The dtype a loss computes in: that of Keras for `None`, never a half.

    Args:
        dtype: Name, dtype policy or `None`.

    Raises:
        ValueError: If it is float16 or bfloat16.
    """
    policy = keras.dtype_policies.get(dtype or keras.config.floatx())
    if policy.compute_dtype in HALF:
        raise ValueError(
            "`dtype` of a loss must not be a half precision: labels would be "
            "rounded and exponentials overflow. A mixed-precision model works "
            'with a float32 loss; pass `dtype="float32"` or nothing. '
            f"Received: dtype={policy.compute_dtype}"
        )
    return policy.compute_dtype


def check_integer_labels(labels, loss_name: str) -> None:
    """Raises a ValueError unless `labels` are integers."""
    # Under a strategy Keras builds the model with the mean of the labels over
    # the replicas, which is a float.
    if distribute.num_replicas() > 1:
        return
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(labels).dtype)
    if not dtype.startswith(("int", "uint")):
        raise ValueError(
            f"`y_true` of the loss {loss_name!r} must be integer class labels "
            f"of shape (batch,). Received: y_true of dtype {dtype}. Cast the "
            'labels in the input pipeline, for example with `astype("int32")`.'
        )


def matching_labels(labels, logits, loss_name: str, centres: bool = False):
    """`labels` as `(batch,)`, if they fit `logits` of `(batch, classes)`.

    With `centres`, `logits` may also be `(batch, classes, centres)`.
    """
    received = (
        f"Received: y_true.shape={tuple(labels.shape)}, "
        f"y_pred.shape={tuple(logits.shape)}"
    )
    if len(logits.shape) != 2 and not (centres and len(logits.shape) == 3):
        raise ValueError(
            f"`y_pred` of the loss {loss_name!r} must be logits of shape "
            f"(batch, classes). {received}. Several centres per class need a "
            "loss that reduces them."
        )
    if len(labels.shape) == 2 and labels.shape[1] == 1:
        labels = ops.reshape(labels, (-1,))
    if len(labels.shape) != 1:
        raise ValueError(
            f"`y_true` of the loss {loss_name!r} must be integer class labels "
            f"of shape (batch,), not one-hot rows. {received}. Take the "
            "`argmax` of one-hot labels."
        )
    sizes = {labels.shape[0], logits.shape[0]} - {None}
    if len(sizes) > 1:
        raise ValueError(
            f"`y_true` and `y_pred` of the loss {loss_name!r} must have the "
            f"same number of rows. {received}"
        )
    return labels
