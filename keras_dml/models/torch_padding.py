"""Convolution and pooling with the padding of PyTorch and Caffe.

With stride 2, Keras pads an even map on one side only. PyTorch and Caffe pad
it on both sides, and some of their poolings round the size up.
"""

import keras


def convolve(x, width, kernel, name, stride=1, use_bias=False):
    """Convolves a map that is padded by half the kernel on every side.

    Args:
        x: 4D Keras tensor.
        width: Number of filters.
        kernel: Side of the kernel, odd.
        name: Name of the layer.
        stride: Stride of the convolution. Defaults to `1`.
        use_bias: Whether to add a bias. Defaults to `False`.

    Returns:
        4D Keras tensor.
    """
    padding = "same"
    if stride > 1 and kernel > 1:
        x = keras.layers.ZeroPadding2D(kernel // 2, name=f"{name}_padding")(x)
        padding = "valid"
    return keras.layers.Conv2D(
        width,
        kernel,
        strides=stride,
        padding=padding,
        use_bias=use_bias,
        kernel_initializer="he_normal",
        name=name,
    )(x)


def ceil_max_pool(x, size, name):
    """Pools with stride 2 and rounds the size of the output up.

    Args:
        x: 4D Keras tensor without negative values, because zeros pad the
            border.
        size: Side of the window.
        name: Name of the layer.

    Returns:
        4D Keras tensor.
    """
    # The window leaves out a row too many, so unknown sides are padded.
    height, width = (
        1 if side is None else (side - size) % 2 for side in x.shape[1:3]
    )
    if height or width:
        x = keras.layers.ZeroPadding2D(
            ((0, height), (0, width)), name=f"{name}_padding"
        )(x)
    return keras.layers.MaxPooling2D(size, strides=2, name=name)(x)


def average_pool(x, name):
    """Averages 3 x 3 values, and counts the zeros that pad the border."""
    x = keras.layers.ZeroPadding2D(1, name=f"{name}_padding")(x)
    return keras.layers.AveragePooling2D(3, strides=1, name=name)(x)
