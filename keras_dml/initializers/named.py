"""The initializers that the papers use, by name.

Matrices here are `(fan_in, units)` for kernels and `(classes, dim)` for
proxies. PyTorch stores a linear layer as `(units, fan_in)`: its `fan_out` of a
proxy matrix is the number of classes.
"""

from collections.abc import Callable

import keras

from keras_dml.initializers.uniform_fan_in import UniformFanIn
from keras_dml.naming import nearest


def _scaling(mode: str, distribution: str, scale: float) -> Callable:
    return lambda: keras.initializers.VarianceScaling(scale, mode, distribution)


KERNELS: dict[str, Callable] = {
    # torch.nn.Linear (ProxyNCA++).
    "uniform_fan_in": UniformFanIn,
    # kaiming_normal_(mode="fan_out") on (units, fan_in) (Proxy-Anchor).
    "he_fan_out": _scaling("fan_out", "untruncated_normal", 2.0),
    # slim.variance_scaling_initializer (Heated-Up Softmax).
    "scaled_fan_in": _scaling("fan_in", "truncated_normal", 2.0),
}

PROXIES: dict[str, Callable] = {
    # kaiming_normal_(mode="fan_out") on (classes, dim) (Proxy-Anchor).
    "he_fan_out": _scaling("fan_in", "untruncated_normal", 2.0),
    # N(0, 1) / 8 (ProxyNCA and ProxyNCA++).
    "normal_eighth": lambda: keras.initializers.RandomNormal(stddev=1 / 8),
    # tf.variance_scaling_initializer on (dim, classes) (Heated-Up Softmax).
    "scaled_fan_in": _scaling("fan_out", "truncated_normal", 1.0),
    # kaiming_uniform_(a=sqrt(5)) on (dim, classes) (SoftTriple).
    "uniform_fan_in": UniformFanIn,
    "normal": lambda: keras.initializers.RandomNormal(stddev=1.0),
    # N(0, 1) / 100 (ArcFace).
    "normal_hundredth": lambda: keras.initializers.RandomNormal(stddev=0.01),
}


def get_kernel_initializer(identifier) -> Callable:
    """Returns the initializer of a kernel `(fan_in, units)` or of its bias.

    Args:
        identifier: `"uniform_fan_in"`, `"he_fan_out"`, `"scaled_fan_in"`, or
            anything that `keras.initializers.get` takes.

    Raises:
        ValueError: If the name is unknown.

    Example:

    >>> get_kernel_initializer("he_fan_out")((4, 2)).shape
    TensorShape([4, 2])
    """
    return _get(identifier, KERNELS, "kernel initializer")


def get_proxy_initializer(identifier) -> Callable:
    """Returns the initializer of proxies `(classes, dim)`.

    Args:
        identifier: `"he_fan_out"`, `"normal"`, `"normal_eighth"`,
            `"normal_hundredth"`, `"scaled_fan_in"`, `"uniform_fan_in"`, or
            anything that `keras.initializers.get` takes.

    Raises:
        ValueError: If the name is unknown.

    Example:

    >>> get_proxy_initializer("normal_eighth")((3, 2)).shape
    TensorShape([3, 2])
    """
    return _get(identifier, PROXIES, "proxy initializer")


def _get(identifier, table, what):
    if isinstance(identifier, str) and identifier in table:
        return table[identifier]()
    try:
        initializer = keras.initializers.get(identifier)
    except ValueError as error:
        raise ValueError(
            f"Unknown {what} {identifier!r}. Did you mean "
            f"{nearest(str(identifier), table)}? Every initializer of Keras "
            f"is allowed too. Received: {identifier!r}"
        ) from error
    if initializer is None:
        raise ValueError(f"A {what} is needed. Received: {identifier!r}")
    return initializer
