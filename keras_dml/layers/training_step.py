"""Counts the training steps."""

import keras
from keras import ops

from keras_dml.layers.checks import check_not_half
from keras_dml.layers.class_memory import add_state


@keras.saving.register_keras_serializable(package="keras_dml")
class TrainingStep(keras.layers.Layer):
    """Appends the number of the training step to each row.

    The loss `AtStep` takes the result: the step seeds the draws of a miner. It
    is a non-trainable weight, so that a resumed training continues the count.

    Args:
        **kwargs: Base layer arguments. `dtype`, not a half precision, defaults
            to `"float32"`.

    Call arguments:
        inputs: Float tensor `(batch, dim)`.
        training: Boolean, whether to count the step.

    Output shape:
        2D float32 tensor `(batch, dim + 1)`.

    Raises:
        ValueError: If `dtype` is a half precision.

    Example:

    >>> layer = TrainingStep()
    >>> rows = layer(np.ones((1, 2)), training=True)
    >>> print(ops.convert_to_numpy(layer(rows)))
    [[1. 1. 0. 1.]]
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)

    def build(self, input_shape):
        self.step = add_state(
            self, "step", (), "int32", aggregation="only_first_replica"
        )

    def call(self, inputs, training=False):
        first = inputs[:, :1]
        step = ops.cast(ops.convert_to_tensor(self.step), first.dtype)
        if training:
            self.step.assign_add(1)
        column = ops.broadcast_to(step, ops.shape(first))
        return ops.concatenate([inputs, column], axis=1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], input_shape[-1] + 1)
