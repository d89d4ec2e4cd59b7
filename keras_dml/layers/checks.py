"""Checks of inputs that several layers share."""

from keras import ops


def check_labeled_rows(input_shape, layer_name: str) -> None:
    """Raises a ValueError unless shapes are `(batch, dim)` and `(batch,)`.

    Args:
        input_shape: Pair of shapes: that of the embeddings, and that of the
            labels, which may also be `(batch, 1)`. Unknown sizes are `None`.
        layer_name: String, for the message.
    """
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


def label_vector(labels):
    """Returns integer labels as an int32 tensor `(batch,)`.

    Args:
        labels: Integer tensor `(batch,)` or `(batch, 1)`.
    """
    return ops.cast(ops.reshape(labels, (-1,)), "int32")
