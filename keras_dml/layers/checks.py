"""Checks of arguments and inputs that several layers share."""

from collections.abc import Collection

from keras import ops

from keras_dml.naming import nearest


def check_integer(name: str, value, least: int = 1) -> None:
    """Raises a ValueError unless `value` is an integer of at least `least`.

    Args:
        name: Name of the argument.
        value: Its value.
        least: Defaults to `1`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        wanted = f"an integer of at least {least}"
        if least == 1:
            wanted = "a positive integer"
        raise ValueError(
            f"`{name}` must be {wanted}. Received: {name}={value!r}"
        )


def check_choice(name: str, value, choices: Collection) -> None:
    """Raises a ValueError unless `value` is one of `choices`.

    Args:
        name: Name of the argument.
        value: Its value.
        choices: The allowed strings, and `None` where it is allowed.
    """
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}. Did you mean "
            f"{nearest(str(value), filter(None, choices))}?"
        )


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
