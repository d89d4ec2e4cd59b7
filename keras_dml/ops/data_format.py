"""Where the axes of an image batch are."""

import keras

DATA_FORMATS = ("channels_last", "channels_first")


def standardize_data_format(data_format: str | None) -> str:
    """`data_format` itself, or the one of Keras' configuration for `None`."""
    if data_format is None:
        return keras.config.image_data_format()
    if data_format not in DATA_FORMATS:
        raise ValueError(
            '`data_format` must be "channels_last" or "channels_first". '
            f"Received: data_format={data_format!r}"
        )
    return data_format


def spatial_axes(data_format: str) -> tuple[int, int]:
    """The axes of height and width in a 4D tensor."""
    return (1, 2) if data_format == "channels_last" else (2, 3)


def pooled_shape(
    input_shape: tuple[int | None, ...], data_format: str
) -> tuple[int | None, int | None]:
    """Shape `(batch, channels)` that is left after global pooling."""
    channels = -1 if data_format == "channels_last" else 1
    return (input_shape[0], input_shape[channels])
