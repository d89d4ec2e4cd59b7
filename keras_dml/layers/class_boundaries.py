"""A learned boundary for every class."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import finite_number, positive_integer
from keras_dml.layers.checks import (
    check_labeled_rows,
    check_not_half,
    label_vector,
)
from keras_dml.layers.class_memory import add_state
from keras_dml.ops.labels import among_classes


@keras.saving.register_keras_serializable(package="keras_dml")
class ClassBoundaries(keras.layers.Layer):
    """Appends the boundary of its class and the step to each embedding.

    The loss `Margin` takes the result. The boundaries are an ordinary weight
    named `boundaries`, so that an optimizer rule can address them by path.
    The step counts the training batches and seeds the draws of the loss. It
    is a non-trainable weight, so that a resumed training continues the count.

    Args:
        num_classes: Integer, the number of classes.
        initial: Float, the boundary that every class starts with. Defaults to
            `1.2`.
        **kwargs: Base layer arguments. `trainable=False` fixes the
            boundaries. `dtype`, not a half precision, defaults to `"float32"`.

    Call arguments:
        inputs: List of the embeddings, a float tensor `(batch, dim)`, and the
            labels, an integer tensor `(batch,)` with values from 0 to
            `num_classes - 1`; others raise, or give NaN on an accelerator and
            under XLA.
        training: Boolean, whether to count the step.

    Output shape:
        2D float32 tensor `(batch, dim + 2)`.

    Raises:
        ValueError: If `num_classes` is not a positive integer, `dtype` is a
            half precision, or a label has no class.

    Example:

    >>> layer = ClassBoundaries(num_classes=3)
    >>> y_pred = layer([np.ones((1, 2)), np.array([2])])
    >>> print(ops.convert_to_numpy(y_pred))
    [[1.  1.  1.2 0. ]]

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        section 3.3.
    """

    def __init__(self, num_classes, initial=1.2, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)
        self.num_classes = positive_integer("num_classes", num_classes)
        self.initial = finite_number("initial", initial)

    def build(self, input_shape):
        check_labeled_rows(input_shape, self.name)
        self.boundaries = self.add_weight(
            shape=(self.num_classes,),
            initializer=keras.initializers.Constant(self.initial),
            name="boundaries",
        )
        self.step = add_state(
            self, "step", (), "int32", aggregation="only_first_replica"
        )

    def call(self, inputs, training=False):
        embeddings, labels = inputs
        labels = label_vector(labels, self.num_classes, self.name)
        boundary = ops.where(
            among_classes(labels, self.num_classes),
            ops.take(self.boundaries, labels),
            float("nan"),
        )
        step = ops.cast(ops.convert_to_tensor(self.step), boundary.dtype)
        if training:
            self.step.assign_add(1)
        columns = ops.stack(
            [boundary, ops.broadcast_to(step, ops.shape(boundary))], axis=1
        )
        return ops.concatenate([embeddings, columns], axis=1)

    def compute_output_shape(self, input_shape):
        batch, dim = input_shape[0]
        return (batch, dim + 2)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
