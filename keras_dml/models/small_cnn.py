"""A small network for small images."""

from collections.abc import Sequence

import keras

SMALLEST_TO_HALVE = 8


def small_cnn(
    input_shape: tuple[int, int, int],
    widths: Sequence[int] = (64, 128, 128),
    stem: int = 32,
    momentum: float = 0.9,
    name: str = "small_cnn",
) -> keras.Model:
    """Builds a network for images of 28 to 96 pixels, trained from scratch.

    A stem, then one stage for each width. A stage halves the map if its
    shorter side has at least 8 pixels, then applies a convolution to the new
    width and a residual convolution. Every convolution is 3 x 3, with batch
    normalization and ReLU.

    Args:
        input_shape: Height, width and channels of an image; any number of
            channels.
        widths: Channels of each stage. Defaults to `(64, 128, 128)`.
        stem: Channels of the first convolution. Defaults to `32`.
        momentum: Momentum of the batch normalization's moving statistics.
            Defaults to `0.9`, which short trainings need.
        name: Name of the model. Defaults to `"small_cnn"`.

    Returns:
        A model from `(batch, height, width, channels)` to features
        `(batch, height / 2**n, width / 2**n, widths[-1])`, where `n` is the
        number of stages that halve the map: two at 28 pixels, three at 96.

    Example:

    >>> small_cnn((28, 28, 1)).output_shape
    (None, 7, 7, 128)
    """

    def convolve(x, width, place):
        x = keras.layers.Conv2D(
            width,
            3,
            padding="same",
            use_bias=False,
            kernel_initializer="he_normal",
            name=f"{place}_convolution",
        )(x)
        x = keras.layers.BatchNormalization(
            momentum=momentum, epsilon=1e-5, name=f"{place}_norm"
        )(x)
        return keras.layers.ReLU(name=f"{place}_relu")(x)

    image = keras.Input(input_shape, name="small_cnn_image")
    x = convolve(image, stem, "stem")
    for number, width in enumerate(widths, start=1):
        stage = f"stage_{number}"
        if min(x.shape[1:3]) >= SMALLEST_TO_HALVE:
            x = keras.layers.MaxPooling2D(2, name=f"{stage}_pool")(x)
        x = convolve(x, width, f"{stage}_widen")
        residual = convolve(x, width, f"{stage}_residual")
        x = keras.layers.Add(name=f"{stage}_add")([x, residual])
    return keras.Model(image, x, name=name)
