"""A small network for small images."""

from collections.abc import Sequence

import keras


def small_cnn(
    input_shape: tuple[int, int, int],
    widths: Sequence[int] = (64, 64, 128, 128),
    kernel_size: int = 3,
    momentum: float = 0.9,
    name: str = "small_cnn",
) -> keras.Model:
    """Convolutions for images of 28 to 96 pixels, trained from nothing.

    One block per width: convolution, batch normalization, ReLU; the size is
    halved between blocks.

    Args:
        input_shape: Height, width and channels of an image; any number of
            channels.
        widths: Channels of each block. Defaults to `(64, 64, 128, 128)`.
        kernel_size: Side of every convolution's kernel. Defaults to `3`.
        momentum: Momentum of the batch normalization's moving statistics.
            Defaults to `0.9`, which short trainings need.
        name: Name of the model. Defaults to `"small_cnn"`.

    Returns:
        A model from `(batch, height, width, channels)` to features
        `(batch, height / 8, width / 8, widths[-1])` for four widths.

    Example:

    >>> small_cnn((28, 28, 1)).output_shape
    (None, 3, 3, 128)
    """
    image = keras.Input(input_shape, name="small_cnn_image")
    x = image
    for index, width in enumerate(widths):
        if index > 0:
            x = keras.layers.MaxPooling2D(2, name=f"block_{index}_pool")(x)
        x = keras.layers.Conv2D(
            width,
            kernel_size,
            padding="same",
            use_bias=False,
            kernel_initializer="he_normal",
            name=f"block_{index}_convolution",
        )(x)
        x = keras.layers.BatchNormalization(
            momentum=momentum, epsilon=1e-5, name=f"block_{index}_norm"
        )(x)
        x = keras.layers.ReLU(name=f"block_{index}_relu")(x)
    return keras.Model(image, x, name=name)
