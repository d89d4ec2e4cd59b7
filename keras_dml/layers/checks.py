"""Checks that several layers share."""

import keras
from keras import ops

from keras_dml.checks import HALF, require
from keras_dml.ops.labels import refuse, within_classes


def check_labeled_rows(input_shape, layer_name: str) -> None:
    """Raises unless the shapes are `(batch, dim)` and `(batch,)`.

    Args:
        input_shape: Pair of shapes: that of the embeddings, and that of the
            labels, which may also be `(batch, 1)`. Unknown sizes are `None`.
        layer_name: String, for the message.

    Raises:
        ValueError: If they are not, or `input_shape` is no pair.
    """
    check_list_of_inputs(input_shape, layer_name, "embeddings", "labels")
    embeddings, labels = (tuple(shape) for shape in input_shape)
    column = len(labels) == 2 and labels[1] == 1
    rows = {*embeddings[:1], *labels[:1]} - {None}
    if (
        len(embeddings) != 2
        or not (len(labels) == 1 or column)
        or len(rows) > 1
    ):
        raise ValueError(
            f"The layer {layer_name!r} takes embeddings of shape (batch, dim) "
            "and integer labels of shape (batch,), not one-hot rows. Received: "
            f"shapes {embeddings} and {labels}. Take the `argmax` of one-hot "
            "labels."
        )


def check_list_of_inputs(input_shape, layer_name: str, *names: str) -> None:
    """Raises unless a layer takes a list of some inputs.

    Args:
        input_shape: List of shapes.
        layer_name: String, for the message.
        *names: What the inputs are.

    Raises:
        ValueError: If it is the shape of one tensor, or of other inputs.
    """
    if (
        not isinstance(input_shape, (list, tuple))
        or len(input_shape) != len(names)
        or not all(isinstance(one, (list, tuple)) for one in input_shape)
    ):
        raise ValueError(
            f"The layer {layer_name!r} takes the list [{', '.join(names)}]. "
            f"Received: inputs of shape {input_shape}"
        )


def label_vector(labels, num_classes: int, layer_name: str):
    """Returns integer labels as an int32 tensor `(batch,)`.

    Args:
        labels: Integer tensor `(batch,)` or `(batch, 1)`; floats must be
            integers.
        num_classes: Integer; other labels than those from 0 to
            `num_classes - 1` raise, see `within_classes`. Where nothing can
            raise, the layer must give NaN for them.
        layer_name: String, for the message.
    """
    labels = ops.reshape(labels, (-1,))
    dtype = keras.backend.standardize_dtype(labels.dtype)
    if keras.backend.is_float_dtype(dtype):
        labels = refuse(
            labels,
            labels != ops.floor(labels),
            f"The labels of the layer {layer_name} must be integers",
            "Number the classes from 0 without gaps.",
        )
    elif dtype not in ("int64", "uint32", "uint64"):
        # Smaller integers cannot be compared with a large `num_classes`.
        labels = ops.cast(labels, "int32")
    # Before the cast, which takes 2**32 for 0.
    labels = within_classes(
        labels,
        num_classes,
        f"The labels of the layer {layer_name} must lie between 0 and "
        f"{num_classes - 1}, for it has {num_classes} classes",
        "Number the classes from 0 without gaps, or give the layer a larger "
        "`num_classes`.",
    )
    return ops.cast(labels, "int32")


def check_not_half(dtype: str) -> None:
    """Raises for a dtype that rounds the numbers of steps, and losses.

    Args:
        dtype: Compute dtype of a layer.

    Raises:
        UsageError: If it is a half precision.
    """
    require(
        dtype not in HALF,
        "dtype",
        "float32 or float64: half precision would round steps and losses",
        dtype,
        "A mixed-precision model works with a float32 layer; pass "
        '`dtype="float32"` or nothing.',
    )
