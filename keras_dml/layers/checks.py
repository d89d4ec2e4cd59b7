"""Checks of inputs that several layers share."""

from keras import ops

from keras_dml.ops.labels import within_classes


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


def label_vector(labels, num_classes: int, layer_name: str):
    """Returns integer labels as an int32 tensor `(batch,)`.

    Args:
        labels: Integer tensor `(batch,)` or `(batch, 1)`.
        num_classes: Integer; other labels than those from 0 to
            `num_classes - 1` raise, see `within_classes`. Where nothing can
            raise, the layer must give NaN for them.
        layer_name: String, for the message.
    """
    return within_classes(
        ops.cast(ops.reshape(labels, (-1,)), "int32"),
        num_classes,
        f"The labels of the layer {layer_name} must lie between 0 and "
        f"{num_classes - 1}, for it has {num_classes} classes",
        "Number the classes from 0 without gaps, or give the layer a larger "
        "`num_classes`.",
    )
