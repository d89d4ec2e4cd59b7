"""Adam as PyTorch computes it."""

import math

import keras
from keras import ops

from keras_dml.checks import in_interval, not_negative


@keras.saving.register_keras_serializable(package="keras_dml")
class TorchAdam(keras.optimizers.Optimizer):
    """Runs Adam with epsilon added after the bias correction.

    With the moments `m` and `v` of the gradient `g + l2 * w` at step `t`:

    `w -= learning_rate * m' / (sqrt(v') + epsilon)`,
    `m' = m / (1 - beta_1**t)`, `v' = v / (1 - beta_2**t)`.

    `keras.optimizers.Adam` adds epsilon to `sqrt(v)` before the correction.
    The two agree for a tiny epsilon. With `epsilon=1`, which the authors of
    ProxyNCA++ use, a step of Keras' form is 30 times smaller at first and
    still smaller after a thousand steps.

    Args:
        learning_rate: Float or `keras.optimizers.schedules` object. Defaults
            to `0.001`.
        beta_1: Float in [0, 1), decay of the first moment. Defaults to `0.9`.
        beta_2: Float in [0, 1), decay of the second moment. Defaults to
            `0.999`.
        epsilon: Float, added to the root of the corrected second moment.
            Defaults to `1e-8`.
        l2: Float, coupled weight decay: `l2 * w` is added to the clipped
            gradient of every variable, as `torch.optim.Adam(weight_decay=l2)`
            does. Defaults to `0.0`. `weight_decay` is the decoupled weight
            decay of AdamW.
        name: String. Defaults to `"torch_adam"`.
        **kwargs: Arguments of `keras.optimizers.Optimizer`: `weight_decay`,
            `clipnorm`, `clipvalue`, `global_clipnorm`, `use_ema`,
            `ema_momentum`, `ema_overwrite_frequency`, `loss_scale_factor` and
            `gradient_accumulation_steps`.

    Raises:
        ValueError: If `beta_1`, `beta_2`, `epsilon` or `l2` is out of range.

    Example:

    ```python
    model.compile(TorchAdam(4e-3, epsilon=1.0, clipvalue=10.0), loss=loss)
    ```

    Reference:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015,
        algorithm 1.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
        l2=0.0,
        name="torch_adam",
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_1 = in_interval("beta_1", beta_1, 0, 1, closed="left")
        self.beta_2 = in_interval("beta_2", beta_2, 0, 1, closed="left")
        self.epsilon = not_negative("epsilon", epsilon)
        self.l2 = not_negative("l2", l2)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._first_moments, self._second_moments = (
            self.add_optimizer_variables(
                variables, ["first_moment", "second_moment"]
            )
        )

    def update_step(self, gradient, variable, learning_rate):
        dtype = variable.dtype
        learning_rate = ops.cast(learning_rate, dtype)
        gradient = ops.cast(gradient, dtype)
        if hasattr(gradient, "dense_shape"):
            # It may name a row twice, and the square below is of the sum.
            gradient = ops.add(gradient, ops.zeros_like(variable))
        if self.l2:
            gradient = ops.add(gradient, ops.multiply(variable, self.l2))
        index = self._get_variable_index(variable)
        first, second = self._first_moments[index], self._second_moments[index]
        change = ops.subtract(gradient, first)
        self.assign_add(first, change * (1 - self.beta_1))
        change = ops.subtract(ops.square(gradient), second)
        self.assign_add(second, change * (1 - self.beta_2))
        step = ops.cast(self.iterations + 1, dtype)
        mean = ops.divide(first, _correction(self.beta_1, step))
        deviation = ops.sqrt(ops.divide(second, _correction(self.beta_2, step)))
        update = mean * learning_rate / (deviation + self.epsilon)
        self.assign_sub(variable, update)

    def get_config(self):
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "l2": self.l2,
        }


def _correction(beta, step):
    """Returns `1 - beta**step` without the float32 rounding of `beta**step`."""
    if beta == 0:
        return ops.ones_like(step)
    return -ops.expm1(step * math.log(beta))
