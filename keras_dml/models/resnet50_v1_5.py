"""ResNet-50 in the version of torchvision."""

import keras

from keras_dml.models.torch_padding import convolve

# Number of blocks and width of each stage.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50_v1_5(
    input_shape: tuple[int, int, int], name: str = "resnet50_v1_5"
) -> keras.Model:
    """Builds ResNet-50 with the stride in the 3 x 3 convolution.

    `keras.applications.ResNet50` cannot hold torchvision's weights: it has the
    stride in the first 1 x 1 convolution of a stage, a bias in every
    convolution and another epsilon. The layers have the names of torchvision,
    with underscores for dots.

    Args:
        input_shape: Height, width and 3, for images in the `"torch"` mode of
            `ImagePreprocessing`.
        name: Name of the model. Defaults to `"resnet50_v1_5"`.

    Returns:
        A model from `(batch, height, width, 3)` to features
        `(batch, height / 32, width / 32, 2048)`.

    Reference:
        He et al., "Deep Residual Learning for Image Recognition", CVPR 2016;
        the stride as in Goyal et al., "Accurate, Large Minibatch SGD", 2017.

    Example:

    >>> resnet50_v1_5((224, 224, 3)).output_shape
    (None, 7, 7, 2048)
    """
    image = keras.Input(input_shape, name="resnet50_v1_5_image")
    x = convolve(image, 64, 7, "conv1", stride=2)
    x = _norm(x, "bn1")
    x = keras.layers.ReLU(name="relu")(x)
    x = keras.layers.ZeroPadding2D(1, name="maxpool_padding")(x)
    x = keras.layers.MaxPooling2D(3, strides=2, name="maxpool")(x)
    for stage, (blocks, width) in enumerate(STAGES, start=1):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 1 else 1
            x = _block(x, width, stride, f"layer{stage}_{block}", block == 0)
    return keras.Model(image, x, name=name)


def _norm(x, name):
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, name=name
    )(x)


def _block(x, width, stride, name, first):
    shortcut = x
    if first:
        shortcut = convolve(
            x, 4 * width, 1, f"{name}_downsample_0", stride=stride
        )
        shortcut = _norm(shortcut, f"{name}_downsample_1")
    x = convolve(x, width, 1, f"{name}_conv1")
    x = _norm(x, f"{name}_bn1")
    x = keras.layers.ReLU(name=f"{name}_relu1")(x)
    x = convolve(x, width, 3, f"{name}_conv2", stride=stride)
    x = _norm(x, f"{name}_bn2")
    x = keras.layers.ReLU(name=f"{name}_relu2")(x)
    x = convolve(x, 4 * width, 1, f"{name}_conv3")
    x = _norm(x, f"{name}_bn3")
    x = keras.layers.Add(name=f"{name}_add")([x, shortcut])
    return keras.layers.ReLU(name=f"{name}_relu3")(x)
