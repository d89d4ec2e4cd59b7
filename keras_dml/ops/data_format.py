"""The order of the axes of a batch of images."""

import keras

from keras_dml.checks import one_of

DATA_FORMATS = ("channels_last", "channels_first")


def standardize_data_format(data_format: str | None) -> str:
    """Returns `data_format`, or the default of Keras for `None`."""
    if data_format is None:
        return keras.config.image_data_format()
    return one_of("data_format", data_format, DATA_FORMATS)


def spatial_axes(data_format: str) -> tuple[int, int]:
    """Returns the axes of height and width in a 4D tensor."""
    return (1, 2) if data_format == "channels_last" else (2, 3)


def pooled_shape(
    input_shape: tuple[int | None, ...], data_format: str
) -> tuple[int | None, int | None]:
    """Returns the shape `(batch, channels)` of the output of global pooling."""
    channels = -1 if data_format == "channels_last" else 1
    return (input_shape[0], input_shape[channels])
