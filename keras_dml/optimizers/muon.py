"""Muon for kernels of convolutions and projections, Adam for the rest."""

import math
import re

import keras
from keras import ops

from keras_dml.checks import (
    boolean,
    in_interval,
    not_negative,
    positive_integer,
    require,
)

# Steep at zero, and near one after a few iterations: Jordan et al.
_QUINTIC = (3.4445, -4.7750, 2.0315)
_TINY = 1e-7
# Tables with a row for each class, token or position: no maps of features.
EXCLUDE = (r"(^|/)proxies(_\d+)?(/|$)", r"(^|/)embeddings$")


def orthogonalized(matrix, steps=5):
    """Replaces the singular values of a matrix by values near one.

    Newton-Schulz iterations of an odd polynomial, which need no singular
    value decomposition: `X <- a X + b (X X') X + c (X X')^2 X`, from the
    matrix over its Frobenius norm.

    Args:
        matrix: Float tensor `(rows, columns)`.
        steps: Integer, the number of iterations. Defaults to `5`, after which
            singular values of at least a thousandth of the norm lie in
            [0.6, 1.3].

    Returns:
        Tensor of the shape of `matrix`; zeros for a matrix of zeros.

    Example:

    >>> scaled = np.diag([3.0, 1.0]).astype("float32")
    >>> bool(np.all(np.abs(np.diag(orthogonalized(scaled)) - 1.0) < 0.4))
    True

    Reference:
        Jordan et al., "Muon: An optimizer for hidden layers in neural
        networks", 2024.
    """
    a, b, c = _QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = ops.transpose(matrix) if tall else matrix
    x = x / (ops.sqrt(ops.sum(ops.square(x))) + _TINY)
    for _ in range(steps):
        products = ops.matmul(x, ops.transpose(x))
        mixed = b * products + c * ops.matmul(products, products)
        x = a * x + ops.matmul(mixed, x)
    return ops.transpose(x) if tall else x


@keras.saving.register_keras_serializable(package="keras_dml")
class Muon(keras.optimizers.Optimizer):
    """Moves every direction of a kernel equally far, by orthogonalized steps.

    With the momentum `M` of the gradients of a kernel, as a matrix of inputs
    times outputs:

    `w -= learning_rate * scale * sqrt(max(rows, columns)) * U V'`,

    where `U S V'` is the singular value decomposition of `M`. Each entry
    moves by about `scale * learning_rate`, so rates of Adam fit. Kernels of
    convolutions count as matrices of `height * width * inputs` rows, and so do
    all kernels but for their last axis: Keras' attention has `inputs * heads`
    rows. Vectors, biases, and kernels with one output such as those of
    depthwise convolutions are updated as `keras.optimizers.Adam` updates them;
    so are proxies and the tables of embedding layers, whose rows are classes
    or tokens.

    `keras.optimizers.Muon` moves matrices by the same step, but leaves to Adam
    the kernels of convolutions, which are most of an image network, and all
    variables with "embedding" in their path, kernels as well. To it proxies are
    matrices like others, and it decays weights by default.

    Args:
        learning_rate: Float or `keras.optimizers.schedules` object. Defaults
            to `0.001`.
        momentum: Float in [0, 1), decay of the momentum of kernels. Defaults
            to `0.95`.
        nesterov: Boolean, whether the step looks ahead along the momentum.
            Defaults to `True`.
        steps: Integer, the iterations of `orthogonalized`. Defaults to `5`.
        scale: Float, the size of an entry's step at a learning rate of one.
            Defaults to `0.2`, about that of Adam.
        beta_1: Float in [0, 1), decay of Adam's first moment. Defaults to
            `0.9`.
        beta_2: Float in [0, 1), decay of Adam's second moment. Defaults to
            `0.999`.
        epsilon: Float, added to the root of Adam's second moment. Defaults to
            `1e-7`.
        exclude: List of regular expressions; a variable in whose path one of
            them is found is updated as by Adam. Defaults to `None`, the
            variables named "embeddings", as those of
            `keras.layers.Embedding`, and those with the path component
            "proxies". `[]` excludes none.
        name: String. Defaults to `"muon"`.
        **kwargs: Arguments of `keras.optimizers.Optimizer`: `weight_decay`,
            `clipnorm`, `clipvalue`, `global_clipnorm`, `use_ema`,
            `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor` and
            `gradient_accumulation_steps`.

    Raises:
        ValueError: If a number is out of its range, `nesterov` is no boolean,
            or `exclude` is no list of regular expressions.

    Example:

    ```python
    model.compile(Muon(1e-2), loss=loss)
    ```

    Reference:
        Jordan et al., "Muon: An optimizer for hidden layers in neural
        networks", 2024. Liu et al., "Muon is Scalable for LLM Training", 2025,
        equation 4, for the size of a step.
    """

    def __init__(
        self,
        learning_rate=0.001,
        momentum=0.95,
        nesterov=True,
        steps=5,
        scale=0.2,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        exclude=None,
        name="muon",
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.momentum = in_interval("momentum", momentum, 0, 1, closed="left")
        self.nesterov = boolean("nesterov", nesterov)
        self.steps = positive_integer("steps", steps)
        self.scale = not_negative("scale", scale)
        self.beta_1 = in_interval("beta_1", beta_1, 0, 1, closed="left")
        self.beta_2 = in_interval("beta_2", beta_2, 0, 1, closed="left")
        self.epsilon = not_negative("epsilon", epsilon)
        self.exclude = _patterns(EXCLUDE if exclude is None else exclude)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        (self._momenta,) = self.add_optimizer_variables(variables, ["momentum"])
        self._second_moments = [
            None
            if self._is_orthogonalized(variable)
            else self.add_variable_from_reference(variable, "second_moment")
            for variable in variables
        ]

    def _is_orthogonalized(self, variable):
        found = (re.search(one, variable.path) for one in self.exclude)
        return _is_matrix(variable) and not any(found)

    def update_step(self, gradient, variable, learning_rate):
        learning_rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        index = self._get_variable_index(variable)
        momentum, second = self._momenta[index], self._second_moments[index]
        if second is None:
            update = self._orthogonal_update(gradient, momentum)
        else:
            update = self._adam_update(gradient, momentum, second)
        self.assign_sub(variable, learning_rate * update)

    def _orthogonal_update(self, gradient, momentum):
        self.assign(momentum, self.momentum * momentum + gradient)
        ahead = momentum
        if self.nesterov:
            ahead = gradient + self.momentum * momentum
        matrix = ops.reshape(ahead, (-1, ahead.shape[-1]))
        size = self.scale * math.sqrt(max(matrix.shape))
        update = size * orthogonalized(matrix, self.steps)
        return ops.reshape(update, ahead.shape)

    def _adam_update(self, gradient, first, second):
        step = ops.cast(self.iterations + 1, gradient.dtype)
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        change = ops.square(gradient) - second
        self.assign_add(second, change * (1 - self.beta_2))
        correction = ops.sqrt(1 - ops.power(self.beta_2, step))
        correction = correction / (1 - ops.power(self.beta_1, step))
        return correction * first / (ops.sqrt(second) + self.epsilon)

    def get_config(self):
        return {
            **super().get_config(),
            "momentum": self.momentum,
            "nesterov": self.nesterov,
            "steps": self.steps,
            "scale": self.scale,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "exclude": list(self.exclude),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        # A saved state of before has no second moments of excluded variables.
        config = {"exclude": [], **config}
        return super().from_config(config, custom_objects)


def _patterns(exclude):
    wanted = "a list of regular expressions"
    is_list = isinstance(exclude, (list, tuple))
    require(is_list, "exclude", wanted, exclude)
    for one in exclude:
        try:
            re.compile(one)
        except (re.error, TypeError) as error:
            require(False, "exclude", wanted, exclude, f"{one!r}: {error}.")
    return list(exclude)


def _is_matrix(variable):
    # Those of attention have a bias for each head.
    is_bias = variable.name == "bias"
    return not is_bias and len(variable.shape) > 1 and variable.shape[-1] > 1
