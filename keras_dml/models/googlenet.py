"""GoogLeNet in the version of torchvision."""

import keras

from keras_dml.models.torch_padding import ceil_max_pool, convolve

# Widths of the 1 x 1 branch; of two branches, each a reduction and a
# convolution; of the projection after the pooling.
BLOCKS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(
    input_shape: tuple[int, int, int], name: str = "googlenet"
) -> keras.Model:
    """Builds GoogLeNet with batch normalization, without its classifiers.

    The layers have the names of torchvision, with underscores for dots. As in
    torchvision, the third branch of a block has a 3 x 3 kernel where the paper
    has 5 x 5.

    Args:
        input_shape: Height, width and 3, for images in the `"tf"` mode of
            `ImagePreprocessing`, which is torchvision's `transform_input`.
        name: Name of the model. Defaults to `"googlenet"`.

    Returns:
        A model from `(batch, height, width, 3)` to features
        `(batch, height / 32, width / 32, 1024)`.

    Reference:
        Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, Table 1.

    Example:

    >>> googlenet((224, 224, 3)).output_shape
    (None, 7, 7, 1024)
    """
    image = keras.Input(input_shape, name="googlenet_image")
    x = _unit(image, 64, 7, "conv1", stride=2)
    x = ceil_max_pool(x, 3, "maxpool1")
    x = _unit(x, 64, 1, "conv2")
    x = _unit(x, 192, 3, "conv3")
    x = ceil_max_pool(x, 3, "maxpool2")
    for block, widths in BLOCKS.items():
        if block == "4a":
            x = ceil_max_pool(x, 3, "maxpool3")
        if block == "5a":
            x = ceil_max_pool(x, 2, "maxpool4")
        x = _block(x, widths, f"inception{block}")
    return keras.Model(image, x, name=name)


def _unit(x, width, kernel, name, stride=1):
    x = convolve(x, width, kernel, f"{name}_conv", stride=stride)
    x = keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-3, name=f"{name}_bn"
    )(x)
    return keras.layers.ReLU(name=f"{name}_relu")(x)


def _block(x, widths, name):
    single, reduced, width, third_reduced, third, projection = widths
    first = _unit(x, single, 1, f"{name}_branch1")
    branch = _unit(x, reduced, 1, f"{name}_branch2_0")
    second = _unit(branch, width, 3, f"{name}_branch2_1")
    branch = _unit(x, third_reduced, 1, f"{name}_branch3_0")
    third = _unit(branch, third, 3, f"{name}_branch3_1")
    branch = keras.layers.MaxPooling2D(
        3, strides=1, padding="same", name=f"{name}_branch4_0"
    )(x)
    fourth = _unit(branch, projection, 1, f"{name}_branch4_1")
    return keras.layers.Concatenate(name=f"{name}_output")(
        [first, second, third, fourth]
    )
