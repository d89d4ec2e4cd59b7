"""Embeddings and their labels, as the layers that take both expect them."""


def check_labelled_rows(input_shape, layer_name: str) -> None:
    """Raises a ValueError unless shapes are `(batch, dim)` and `(batch,)`.

    Args:
        input_shape: Pair of shapes, of the embeddings and of the labels,
            which may also be `(batch, 1)`. Sizes that are not known are
            `None`.
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
