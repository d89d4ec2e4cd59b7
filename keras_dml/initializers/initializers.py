"""The initializers of the papers, by name.

Matrices here are `(fan_in, units)` for kernels and `(classes, dim)` for
proxies. PyTorch stores a linear layer as `(units, fan_in)`: its `fan_out` of a
proxy matrix is the number of classes.
"""

import math
from collections.abc import Callable

import keras

from keras_dml.naming import nearest


@keras.saving.register_keras_serializable(package="keras_dml")
class UniformFanIn(keras.initializers.Initializer):
    """Uniform on `[-1 / sqrt(fan_in), 1 / sqrt(fan_in)]`.

    The default of `torch.nn.Linear` for kernel and bias. Keras' own
    `VarianceScaling` does the kernel; a bias does not show its fan-in by its
    shape, so it is given here.

    Args:
        fan_in: Integer, the number of inputs of a unit. Defaults to `None`,
            which means the product of all axes but the last; a bias needs a
            number.
        seed: Integer. Defaults to `None`, a seed that is drawn anew.

    Raises:
        ValueError: If called for a vector without `fan_in`.
    """

    def __init__(self, fan_in=None, seed=None):
        self.fan_in = fan_in
        self.seed = seed if seed is not None else _draw_seed()

    def __call__(self, shape, dtype=None):
        fan_in = self.fan_in
        if fan_in is None:
            if len(shape) < 2:
                raise ValueError(
                    "`fan_in` must be given to initialize a bias: its shape "
                    "does not tell the number of inputs. "
                    f"Received: fan_in=None, shape={tuple(shape)}"
                )
            fan_in = math.prod(shape[:-1])
        limit = 1.0 / math.sqrt(fan_in)
        return keras.random.uniform(
            shape, -limit, limit, dtype=dtype, seed=self.seed
        )

    def get_config(self):
        return {"fan_in": self.fan_in, "seed": self.seed}


def _draw_seed() -> int:
    # Keras' own initializers draw from the generator that
    # `keras.utils.set_random_seed` seeds.
    return keras.initializers.RandomUniform().seed


def _scaling(mode: str, distribution: str, scale: float) -> Callable:
    return lambda: keras.initializers.VarianceScaling(scale, mode, distribution)


KERNELS: dict[str, Callable] = {
    # torch.nn.Linear (ProxyNCA++).
    "uniform_fan_in": UniformFanIn,
    # kaiming_normal_(mode="fan_out") on (units, fan_in) (Proxy-Anchor).
    "he_fan_out": _scaling("fan_out", "untruncated_normal", 2.0),
    # slim.variance_scaling_initializer (Heated-Up Softmax).
    "scaled_fan_in": _scaling("fan_in", "truncated_normal", 1.0),
}

PROXIES: dict[str, Callable] = {
    # kaiming_normal_(mode="fan_out") on (classes, dim) (Proxy-Anchor).
    "he_fan_out": _scaling("fan_in", "untruncated_normal", 2.0),
    # N(0, 1) / 8 (ProxyNCA and ProxyNCA++).
    "normal_eighth": lambda: keras.initializers.RandomNormal(stddev=1 / 8),
    # slim.variance_scaling_initializer on (dim, classes) (Heated-Up Softmax).
    "scaled_fan_in": _scaling("fan_out", "truncated_normal", 1.0),
    "normal": lambda: keras.initializers.RandomNormal(stddev=1.0),
}


def get_kernel_initializer(identifier) -> Callable:
    """The initializer of a kernel `(fan_in, units)` or of its bias.

    Args:
        identifier: `"uniform_fan_in"`, `"he_fan_out"`, `"scaled_fan_in"`, or
            anything that `keras.initializers.get` takes.

    Raises:
        ValueError: If the name is unknown.
    """
    return _get(identifier, KERNELS, "kernel initializer")


def get_proxy_initializer(identifier) -> Callable:
    """The initializer of proxies `(classes, dim)`.

    Args:
        identifier: `"he_fan_out"`, `"normal_eighth"`, `"scaled_fan_in"`,
            `"normal"`, or anything that `keras.initializers.get` takes.

    Raises:
        ValueError: If the name is unknown.
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
