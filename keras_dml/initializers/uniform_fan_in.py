"""The initializer of PyTorch's linear layer."""

import math

import keras

from keras_dml.checks import optional, positive_integer


@keras.saving.register_keras_serializable(package="keras_dml")
class UniformFanIn(keras.initializers.Initializer):
    """Draws uniformly from `[-1 / sqrt(fan_in), 1 / sqrt(fan_in)]`.

    `torch.nn.Linear` initializes its kernel and its bias in this way. Keras'
    `VarianceScaling` can do so for the kernel, but cannot read the fan-in of
    a bias from its shape; here the fan-in is an argument.

    Args:
        fan_in: Integer, the number of inputs of a unit. Defaults to `None`,
            which means the product of all axes but the last; a bias needs a
            number.
        seed: Integer. Defaults to `None`, a random seed; one that is made
            from the config then draws other values.

    Raises:
        ValueError: If `fan_in` is not positive; when called for a vector, if
            it is `None`.

    Example:

    >>> values = UniformFanIn(fan_in=4)((1000,))
    >>> float(ops.max(values)) <= 0.5
    True
    """

    def __init__(self, fan_in=None, seed=None):
        self.fan_in = optional(positive_integer, "fan_in", fan_in)
        self.seed = seed
        self._drawn_seed = _draw_seed() if seed is None else seed

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
            shape, -limit, limit, dtype=dtype, seed=self._drawn_seed
        )

    def get_config(self):
        return {"fan_in": self.fan_in, "seed": self.seed}


def _draw_seed() -> int:
    # Keras' initializers draw their seed from the generator that
    # `keras.utils.set_random_seed` seeds.
    return keras.initializers.RandomUniform().seed
