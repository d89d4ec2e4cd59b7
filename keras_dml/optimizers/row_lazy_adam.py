"""Adam for large tables; each step updates some of the rows."""

import math

import keras
from keras import ops

from keras_dml.checks import in_interval, not_negative
from keras_dml.ops.rows import distinct

# A block of this many entries stays in the processor's cache.
BLOCK_ENTRIES = 2**18

# Options of Keras' base class that go through every entry of the table.
DENSE_OPTIONS = (
    "global_clipnorm",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "loss_scale_factor",
    "gradient_accumulation_steps",
)


@keras.saving.register_keras_serializable(package="keras_dml")
class RowLazyAdam(keras.optimizers.Optimizer):
    """Runs Adam on the rows that have a gradient, and skips the others.

    Rows lie along the first axis of a variable. A step updates the rows that
    have a gradient exactly as `keras.optimizers.Adam` would update them if
    the other steps did not exist: between its steps, a row keeps its moments
    and its count of steps `t`, which corrects their bias. With the moments
    `m` and `v`:

    `w -= learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t)`
    `* m / (sqrt(v) + epsilon)`.

    If every step gives every row a gradient, it equals
    `keras.optimizers.Adam`, or `AdamW` with `weight_decay`. Otherwise it
    differs: the momentum does not move a row without a gradient, and the `v`
    of that row does not decay. A common count of steps, as in TensorFlow
    Addons' `LazyAdam`, would correct too little: a row that gets its first
    gradient after a thousand steps would move 2.5 times too far.

    With a sparse gradient, as `SampledProxies` makes on TensorFlow, a step
    reads and writes the rows of the gradient only, in blocks. With a dense
    gradient, a step updates the rows whose gradient is not all zero, and takes
    the time of a dense step. A learning rate schedule follows the steps of the
    optimizer, not those of a row.

    The optimizer does not offer the options of Keras that go through the whole
    table at each step: a global norm, moving averages, accumulated gradients
    and loss scaling. Weight decay and clipping act on the rows of the step.

    Args:
        learning_rate: Float or `keras.optimizers.schedules` object. Defaults
            to `0.001`.
        beta_1: Float in [0, 1), decay of the first moment. Defaults to `0.9`.
        beta_2: Float in [0, 1), decay of the second moment. Defaults to
            `0.999`.
        epsilon: Float, added to `sqrt(v)`. Defaults to `1e-7`.
        weight_decay: Float, decoupled weight decay of the rows of the step.
            Defaults to `None`.
        clipnorm: Float, largest norm of a variable's gradient. Defaults to
            `None`.
        clipvalue: Float, largest entry of a gradient. Defaults to `None`.
        name: String. Defaults to `"row_lazy_adam"`.

    Raises:
        ValueError: If `beta_1`, `beta_2` or `epsilon` is out of range.

    Example:

    ```python
    optimizer = PerVariable(
        keras.optimizers.Adam(1e-3, name="network"),
        {"proxies/.*": RowLazyAdam(1e-2, name="proxies")},
    )
    ```

    Reference:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015,
        algorithm 1, with the form of epsilon of section 2.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        weight_decay=None,
        clipnorm=None,
        clipvalue=None,
        name="row_lazy_adam",
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            name=name,
        )
        self.beta_1 = in_interval("beta_1", beta_1, 0, 1, closed="left")
        self.beta_2 = in_interval("beta_2", beta_2, 0, 1, closed="left")
        self.epsilon = not_negative("epsilon", epsilon)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._first_moments, self._second_moments = (
            self.add_optimizer_variables(
                variables, ["first_moment", "second_moment"]
            )
        )
        self._steps = [
            self.add_variable(
                moment.shape[:1],
                # Float, because accelerators gather and scatter floats; it
                # counts exactly to 2**24.
                dtype="float32",
                name=moment.name.replace("first_moment", "steps"),
            )
            for moment in self._first_moments
        ]

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        state = (self._first_moments, self._second_moments, self._steps)
        weights = [variable, *(one[index] for one in state)]
        rate = ops.cast(learning_rate, "float32")
        decay = None
        if self.weight_decay is not None and self._use_weight_decay(variable):
            decay = ops.cast(rate * self.weight_decay, variable.dtype)
        # `tf.IndexedSlices`.
        if hasattr(gradient, "dense_shape"):
            self._update_rows(gradient, weights, rate, decay)
        else:
            self._update_all(gradient, weights, rate, decay)

    def _clip_gradients(self, grads):
        # The limits are those of a row's whole gradient, not of its parts.
        return super()._clip_gradients([whole_rows(one) for one in grads])

    def _update_rows(self, gradient, weights, rate, decay):
        table = weights[0]
        weights = [_on_device_of(weight, table) for weight in weights]
        indices, values = _summed(gradient.indices, gradient.values)
        values = ops.cast(values, table.dtype)
        size = max(1, BLOCK_ENTRIES // math.prod(table.shape[1:]))

        def update_block(start):
            block = indices[start : start + size]
            old = [weight.sparse_read(block) for weight in weights]
            new = self._updated(values[start : start + size], old, rate, decay)
            for weight, rows in zip(weights, new, strict=True):
                self.assign(weight, type(gradient)(rows, block))
            return start + size

        ops.while_loop(
            lambda start: start < ops.shape(indices)[0],
            lambda start: (update_block(start),),
            (ops.convert_to_tensor(0, "int32"),),
        )

    def _update_all(self, gradient, weights, rate, decay):
        gradient = ops.cast(gradient, weights[0].dtype)
        old = [ops.convert_to_tensor(weight) for weight in weights]
        new = self._updated(gradient, old, rate, decay)
        axes = tuple(range(1, len(gradient.shape)))
        touched = ops.any(ops.not_equal(gradient, 0), axis=axes)
        for weight, before, after in zip(weights, old, new, strict=True):
            mask = _along_rows(touched, before)
            self.assign(weight, ops.where(mask, after, before))

    def _updated(self, gradient, old, rate, decay):
        """Returns the new values of rows of a variable and of its state."""
        rows, first, second, steps = old
        steps = steps + 1
        bias_1 = 1.0 - ops.power(self.beta_1, steps)
        bias_2 = 1.0 - ops.power(self.beta_2, steps)
        corrected = rate * (ops.sqrt(bias_2) / bias_1)
        corrected = _along_rows(ops.cast(corrected, rows.dtype), rows)
        first = first + (gradient - first) * (1.0 - self.beta_1)
        second = second + (ops.square(gradient) - second) * (1.0 - self.beta_2)
        if decay is not None:
            rows = rows - rows * decay
        rows = rows - corrected * first / (ops.sqrt(second) + self.epsilon)
        return rows, first, second, steps

    def _apply_weight_decay(self, variables):
        # The method of the base class goes through all rows; `_updated` decays
        # the rows of the step instead.
        pass

    def get_config(self):
        config = super().get_config()
        for option in DENSE_OPTIONS:
            del config[option]
        return {
            **config,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }


def _summed(indices, values):
    """Sums the values of equal indices; returns distinct indices and sums."""
    names, count = distinct(indices)
    total = ops.shape(indices)[0]

    def summed():
        places = ops.searchsorted(names, indices)
        sums = ops.segment_sum(values, places, num_segments=total)
        return names[:count], sums[:count]

    return ops.cond(count == total, lambda: (indices, values), summed)


def whole_rows(gradient):
    """Returns a sparse gradient that names each row once, a dense one as is."""
    if not hasattr(gradient, "dense_shape"):
        return gradient
    indices, values = _summed(gradient.indices, gradient.values)
    return type(gradient)(values, indices, gradient.dense_shape)


def _on_device_of(variable, table):
    """Returns the TensorFlow variable of a Keras one, on `table`'s device."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    copies = getattr(variable, "values", [variable])
    return next(copy for copy in copies if copy.device == table.device)


def _along_rows(vector, like):
    """Reshapes a vector with one entry per row to broadcast to `like`."""
    ones = (1,) * (len(like.shape) - len(vector.shape))
    return ops.reshape(vector, (*ops.shape(vector), *ones))
