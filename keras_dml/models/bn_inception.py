"""BN-Inception, the network of most papers on metric learning."""

import keras

from keras_dml.layers.image_preprocessing import CAFFE_MEAN_BGR
from keras_dml.models.torch_padding import average_pool, ceil_max_pool, convolve

MEAN_BGR = (104.0, 117.0, 128.0)

# Widths of the 1 x 1 branch, of the reduction and the 3 x 3 branch, of the
# reduction and the double 3 x 3 branch; the pooling and the width of its
# projection. A block without a 1 x 1 branch halves the map.
BLOCKS = {
    "3a": (64, 64, 64, 64, 96, "average", 32),
    "3b": (64, 64, 96, 64, 96, "average", 64),
    "3c": (None, 128, 160, 64, 96, "max", None),
    "4a": (224, 64, 96, 96, 128, "average", 128),
    "4b": (192, 96, 128, 96, 128, "average", 128),
    "4c": (160, 128, 160, 128, 160, "average", 128),
    "4d": (96, 128, 192, 160, 192, "average", 128),
    "4e": (None, 128, 192, 192, 256, "max", None),
    "5a": (352, 192, 320, 160, 224, "average", 128),
    "5b": (352, 192, 320, 192, 224, "max", 128),
}


def bn_inception(
    input_shape: tuple[int, int, int], name: str = "bn_inception"
) -> keras.Model:
    """Builds Inception with batch normalization, without its classifier.

    The layers are named after those of the public Caffe network and of its
    PyTorch version, which have a bias before the batch normalization.

    The published network is defined for images that give the blocks 3c and 4e
    maps of even size, such as 224 and 227 pixels. For other images the pooling
    of these blocks is padded on both sides, like their convolutions.

    Args:
        input_shape: Height, width and 3, for images in the `"caffe"` mode of
            `ImagePreprocessing`. The network was trained with a slightly
            different mean; the first layer corrects for it.
        name: Name of the model. Defaults to `"bn_inception"`.

    Returns:
        A model from `(batch, height, width, 3)` to features
        `(batch, height / 32, width / 32, 1024)`.

    Reference:
        Ioffe and Szegedy, "Batch Normalization", ICML 2015, Figure 5.

    Example:

    >>> bn_inception((224, 224, 3)).output_shape
    (None, 7, 7, 1024)
    """
    image = keras.Input(input_shape, name="bn_inception_image")
    x = keras.layers.Rescaling(
        scale=1.0,
        offset=[
            given - trained
            for given, trained in zip(CAFFE_MEAN_BGR, MEAN_BGR, strict=True)
        ],
        dtype="float32",
        name="mean",
    )(image)
    x = _unit(x, 64, 7, "conv1_7x7_s2", stride=2)
    x = ceil_max_pool(x, 3, "pool1_3x3_s2")
    x = _unit(x, 64, 1, "conv2_3x3_reduce")
    x = _unit(x, 192, 3, "conv2_3x3")
    x = ceil_max_pool(x, 3, "pool2_3x3_s2")
    for block, widths in BLOCKS.items():
        x = _block(x, widths, f"inception_{block}")
    return keras.Model(image, x, name=name)


def _unit(x, width, kernel, name, stride=1):
    x = convolve(x, width, kernel, name, stride=stride, use_bias=True)
    x = keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, name=f"{name}_bn"
    )(x)
    return keras.layers.ReLU(name=f"{name}_relu")(x)


def _block(x, widths, name):
    single, reduced, width, double_reduced, double, pooling, projection = widths
    stride = 1 if single else 2
    branches = []
    if single:
        branches.append(_unit(x, single, 1, f"{name}_1x1"))
    branch = _unit(x, reduced, 1, f"{name}_3x3_reduce")
    branches.append(_unit(branch, width, 3, f"{name}_3x3", stride))
    branch = _unit(x, double_reduced, 1, f"{name}_double_3x3_reduce")
    branch = _unit(branch, double, 3, f"{name}_double_3x3_1")
    branches.append(_unit(branch, double, 3, f"{name}_double_3x3_2", stride))
    if pooling == "average":
        branch = average_pool(x, f"{name}_pool")
    else:
        branch = keras.layers.MaxPooling2D(
            3, strides=stride, padding="same", name=f"{name}_pool"
        )(x)
    if projection:
        branch = _unit(branch, projection, 1, f"{name}_pool_proj")
    branches.append(branch)
    return keras.layers.Concatenate(name=f"{name}_output")(branches)
