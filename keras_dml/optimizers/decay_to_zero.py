"""A learning rate that can end early, with the tail of a schedule."""

import keras
from keras import ops

from keras_dml.checks import not_negative, positive_integer

# More steps than any training has.
NEVER = 2**31 - 1


@keras.saving.register_keras_serializable(package="keras_dml")
class DecayToZero(keras.optimizers.schedules.LearningRateSchedule):
    """Follows a schedule until it is told to decay to zero.

    `rate(t) = schedule(t)` before the step `s` of `begin(s)`, then

    `rate(t) = schedule(s) max(0, 1 - (t - s) / steps)`.

    A saved optimizer goes on with its decay. On JAX, whose compiled steps do
    not read the start, call `model.make_train_function(force=True)` after
    `begin`, as `EarlyStopping` does.

    Args:
        learning_rate: Float of at least 0 or `LearningRateSchedule`, followed
            before.
        steps: Integer, the number of steps in which the rate falls to zero.

    Raises:
        ValueError: If `steps` is not positive, or `learning_rate` neither a
            number of at least 0 nor a schedule.

    Example:

    >>> rate = DecayToZero(0.4, steps=4)
    >>> rate.begin(100)
    >>> [round(float(rate(step)), 3) for step in (99, 100, 101, 104)]
    [0.4, 0.4, 0.3, 0.0]
    """

    def __init__(self, learning_rate, steps):
        super().__init__()
        if not callable(learning_rate):
            advice = "Or give a `LearningRateSchedule`."
            not_negative("learning_rate", learning_rate, advice)
        self.learning_rate = learning_rate
        self.steps = positive_integer("steps", steps)
        # A variable, because the graph of a training step reads it.
        self._start = keras.Variable(NEVER, dtype="int32", trainable=False)

    def __call__(self, step):
        step = ops.cast(step, "int32")
        followed = ops.minimum(step, self._start.value)
        rate = self.learning_rate
        if callable(rate):
            rate = rate(followed)
        left = 1 - ops.cast(step - followed, "float32") / self.steps
        return rate * ops.maximum(left, 0.0)

    def begin(self, step: int) -> None:
        """Lets the rate fall to zero from a step on."""
        self._start.assign(step)

    def get_config(self):
        start = int(ops.convert_to_numpy(self._start))
        return {
            "learning_rate": keras.saving.serialize_keras_object(
                self.learning_rate
            ),
            "steps": self.steps,
            "start": None if start == NEVER else start,
        }

    @classmethod
    def from_config(cls, config):
        rate = keras.saving.deserialize_keras_object(config["learning_rate"])
        decay = cls(rate, config["steps"])
        if config.get("start") is not None:
            decay.begin(config["start"])
        return decay
