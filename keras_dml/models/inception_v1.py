"""Inception-V1 in the version of TensorFlow's slim library."""

import keras

from keras_dml.models.googlenet import BLOCKS


def inception_v1(
    input_shape: tuple[int, int, int], name: str = "inception_v1"
) -> keras.Model:
    """Builds the GoogLeNet of slim, without its classifier.

    It has the widths of `googlenet`, the padding of TensorFlow, and batch
    normalization without a scale. The layers have the names of the variables
    of the public checkpoint, with underscores for slashes.

    Args:
        input_shape: Height, width and 3, for images in the `"tf"` mode of
            `ImagePreprocessing`.
        name: Name of the model. Defaults to `"inception_v1"`.

    Returns:
        A model from `(batch, height, width, 3)` to features
        `(batch, height / 32, width / 32, 1024)`.

    Reference:
        Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, Table 1.

    Example:

    >>> inception_v1((224, 224, 3)).output_shape
    (None, 7, 7, 1024)
    """
    image = keras.Input(input_shape, name="inception_v1_image")
    x = _unit(image, 64, 7, "Conv2d_1a_7x7", stride=2)
    x = _max_pool(x, 3, 2, "MaxPool_2a_3x3")
    x = _unit(x, 64, 1, "Conv2d_2b_1x1")
    x = _unit(x, 192, 3, "Conv2d_2c_3x3")
    x = _max_pool(x, 3, 2, "MaxPool_3a_3x3")
    for block, widths in BLOCKS.items():
        if block == "4a":
            x = _max_pool(x, 3, 2, "MaxPool_4a_3x3")
        if block == "5a":
            x = _max_pool(x, 2, 2, "MaxPool_5a_2x2")
        # Slim gives the letter `a` of a stage to the pooling before it.
        x = _block(x, widths, f"Mixed_{block[0]}{chr(ord(block[1]) + 1)}")
    return keras.Model(image, x, name=name)


def _unit(x, width, kernel, name, stride=1):
    x = keras.layers.Conv2D(
        width,
        kernel,
        strides=stride,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        name=name,
    )(x)
    x = keras.layers.BatchNormalization(
        momentum=0.95, epsilon=1e-3, scale=False, name=f"{name}_BatchNorm"
    )(x)
    return keras.layers.ReLU(name=f"{name}_Relu")(x)


def _max_pool(x, size, stride, name):
    return keras.layers.MaxPooling2D(
        size, strides=stride, padding="same", name=name
    )(x)


def _block(x, widths, name):
    single, reduced, width, third_reduced, third, projection = widths
    first = _unit(x, single, 1, f"{name}_Branch_0_Conv2d_0a_1x1")
    branch = _unit(x, reduced, 1, f"{name}_Branch_1_Conv2d_0a_1x1")
    second = _unit(branch, width, 3, f"{name}_Branch_1_Conv2d_0b_3x3")
    branch = _unit(x, third_reduced, 1, f"{name}_Branch_2_Conv2d_0a_1x1")
    # The checkpoint has a wrong letter in this block.
    letter = "a" if name == "Mixed_5b" else "b"
    third = _unit(branch, third, 3, f"{name}_Branch_2_Conv2d_0{letter}_3x3")
    branch = _max_pool(x, 3, 1, f"{name}_Branch_3_MaxPool_0a_3x3")
    fourth = _unit(branch, projection, 1, f"{name}_Branch_3_Conv2d_0b_1x1")
    return keras.layers.Concatenate(name=f"{name}_output")(
        [first, second, third, fourth]
    )
