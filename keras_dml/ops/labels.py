"""Checks that labels number the classes, also inside a compiled step."""

import keras
import numpy as np
from keras import ops

from keras_dml import distribute

# From here on float32 does not hold every integer.
LIMIT = 2**24


def known_values(tensor) -> np.ndarray | None:
    """Returns the values of a tensor, or `None` while a graph is traced."""
    try:
        return np.asarray(ops.convert_to_numpy(tensor))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return None


def among_classes(labels, num_classes: int):
    """Returns which labels number a class: boolean, of the shape of `labels`.

    Args:
        labels: Tensor or NumPy array.
        num_classes: Integer, the number of classes.
    """
    return (labels >= 0) & (labels < num_classes)


def merged_by_float32(labels):
    """Returns which labels float32 may merge with others, boolean `(batch,)`.

    Args:
        labels: Integer tensor `(batch,)`, or floats that were integers.
    """
    known = known_values(labels)
    labels = ops.cast(labels, "float32") if known is None else known
    return (labels <= -LIMIT) | (labels >= LIMIT)


def int32_labels(labels, owner: str, whole_floats: bool = False):
    """Returns labels as an int32 vector, if int32 holds them.

    Args:
        labels: Integer tensor or array `(batch,)` or `(batch, 1)`.
        owner: What the labels are of, for the error.
        whole_floats: Boolean, whether floats may stand for integers. Defaults
            to `False`.

    Returns:
        Int32 tensor `(batch,)`; and a boolean tensor `(batch,)`, which labels
        are wrong in a step that may not raise, or `None` where all are right.

    Raises:
        ValueError: If labels are floats that are not allowed or not whole, or
            too large.
        tf.errors.InvalidArgumentError: Inside a compiled step of TensorFlow.

    Example:

    >>> labels, wrong = int32_labels(np.array([[3], [5]]), "`y_true`")
    >>> ops.convert_to_numpy(labels), wrong
    (array([3, 5], dtype=int32), None)
    """
    known = known_values(labels)
    # Not on a backend yet: JAX would drop bits of int64.
    labels = ops.reshape(labels, (-1,)) if known is None else known.reshape(-1)
    dtype = keras.backend.standardize_dtype(labels.dtype)
    is_float = keras.backend.is_float_dtype(dtype)
    # Under a strategy Keras builds a model with the mean of the labels.
    if is_float and not whole_floats and distribute.num_replicas() == 1:
        raise ValueError(
            f"{owner} must be integer class labels of shape (batch,). "
            f"Received: labels of dtype {dtype}. Cast the labels in the input "
            'pipeline, for example with `astype("int32")`.'
        )
    wrong = None
    if is_float and whole_floats:
        wrong = merged_by_float32(labels) | (labels != ops.floor(labels))
        wanted = "be whole numbers strictly between -2**24 and 2**24"
    elif dtype in ("int64", "uint64"):
        wrong = labels >= 2**31
        if dtype == "int64":
            wrong = wrong | (labels < -(2**31))
        wanted = "lie between -2**31 and 2**31 - 1, beyond which classes merge"
    if wrong is not None:
        advice = "Number the classes with `np.unique(labels, "
        advice += "return_inverse=True)`."
        labels = refuse(labels, wrong, f"{owner} must {wanted}", advice)
    return ops.cast(labels, "int32"), None if known is not None else wrong


def within_classes(labels, num_classes: int, wanted: str, advice: str):
    """Returns labels, if they number the classes, see `refuse`.

    Args:
        labels: Int32 tensor `(batch,)`.
        num_classes: Integer, the number of classes.
        wanted: What the labels must be, for the error.
        advice: A sentence on what to do instead.

    Raises:
        ValueError: If a label is below 0, or at least `num_classes`.
        tf.errors.InvalidArgumentError: Inside a compiled step of TensorFlow.

    Example:

    >>> labels = ops.convert_to_tensor([0, 2], "int32")
    >>> len(within_classes(labels, 3, "`labels` must be 0, 1 or 2", "Look."))
    2
    """
    known = known_values(labels)
    right = among_classes(labels if known is None else known, num_classes)
    return refuse(labels, ~right, wanted, advice)


def refuse(labels, wrong, wanted: str, advice: str):
    """Returns labels, if none is wrong.

    Inside a compiled step it raises on CPUs only. On accelerators and under
    XLA nothing can raise there, so the caller must give NaN for such a label.

    Args:
        labels: Integer tensor `(batch,)`.
        wrong: Boolean tensor `(batch,)`; a NumPy array where labels are known.
        wanted: What the labels must be, for the error.
        advice: A sentence on what to do instead.

    Raises:
        ValueError: If a label is wrong.
        tf.errors.InvalidArgumentError: Inside a compiled step of TensorFlow.
    """
    rows = known_values(wrong)
    if rows is None:
        return _within_a_graph(labels, wrong, wanted, advice)
    if rows.any():
        row = rows.argmax()
        label = known_values(labels[row])
        raise ValueError(
            f"{wanted}. Received: label {label} in row {row}. {advice}"
        )
    return labels


def square_in_a_graph(matrix, wanted: str, advice: str):
    """Returns a matrix, if it is square, where only a step knows its shape.

    Only graphs of TensorFlow have unknown shapes. Under XLA nothing can raise.

    Args:
        matrix: Tensor of two axes.
        wanted: What it must be, for the error.
        advice: A sentence on what to do instead.

    Raises:
        tf.errors.InvalidArgumentError: If it is not square.
    """
    # With several replicas the columns are the rows of all.
    if keras.backend.backend() != "tensorflow" or distribute.num_replicas() > 1:
        return matrix
    import tensorflow as tf

    if not tf.is_tensor(matrix):
        return matrix
    shape = tf.shape(matrix)
    square = tf.debugging.Assert(
        tf.equal(shape[0], shape[1]),
        [f"{wanted}. Received: y_true.shape=", shape, advice],
    )
    with tf.control_dependencies([square]):
        return tf.identity(matrix)


def _within_a_graph(labels, wrong, wanted, advice):
    if keras.backend.backend() != "tensorflow":
        return labels
    import tensorflow as tf

    devices = tf.config.list_logical_devices()
    # An accelerator would wait for the host in every step.
    if not tf.is_tensor(labels) or {one.device_type for one in devices} != {
        "CPU"
    }:
        return labels
    # One entry more: a replica may have no rows.
    row = tf.argmax(tf.pad(wrong, [[0, 1]]), output_type=tf.int32)
    right = tf.debugging.Assert(
        ~tf.reduce_any(wrong),
        [
            f"{wanted}. Received: label",
            tf.gather(tf.pad(labels, [[0, 1]]), row),
            "in row",
            row,
            advice,
        ],
    )
    # What reads the labels must wait, or it raises first, in other words.
    with tf.control_dependencies([right]):
        return tf.identity(labels)
