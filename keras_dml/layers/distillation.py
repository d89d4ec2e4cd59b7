"""Compares embeddings with those of a teacher, as a part of the loss."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import finite_number, positive_integer, require
from keras_dml.layers.checks import check_list_of_inputs, check_not_half


@keras.saving.register_keras_serializable(package="keras_dml")
class Distillation(keras.layers.Layer):
    """Appends how much embeddings differ from a teacher's to predictions.

    In training the entry is `weight` times a loss on the embeddings of the
    batch and of the teacher, one number per row, which the loss
    `WithDistillation` adds; outside of training it is zero.

    Args:
        loss: A `keras_dml.losses.DistillationLoss`.
        weight: Float. Defaults to `None`, the loss's `usual_weight`.
        prefixes: Sizes of prefixes of the embeddings that are compared as
            well, at most `dim`, see `keras_dml.losses.Matryoshka`. Defaults to
            none.
        **kwargs: Base layer arguments. `dtype`, not a half precision, defaults
            to `"float32"`.

    Call arguments:
        inputs: List of the predictions, a float tensor `(batch, n)` or
            `(batch, n, m)`; the embeddings, `(batch, dim)`; and those of the
            teacher, `(batch, teacher_dim)`.
        training: Boolean, whether to compare.

    Output shape:
        Float32 tensor `(batch, n + 1, ...)`.

    Raises:
        ValueError: If `loss` is no `DistillationLoss`, a number is out of
            range, `dtype` is a half precision, a prefix is larger than the
            embeddings, or the inputs are not those three.

    Example:

    ```python
    layer = Distillation(Relational(), name="distillation")
    model = keras.Model(
        {"image": image, "teacher": teacher},
        layer([logits, embedding, teacher]),
    )
    model.compile("adam", loss=WithDistillation(NormalizedSoftmax()))
    ```
    """

    def __init__(self, loss, weight=None, prefixes=(), **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)
        self.loss = keras.losses.get(loss)
        require(
            hasattr(self.loss, "usual_weight"),
            "loss",
            "a `keras_dml.losses.DistillationLoss`",
            loss,
        )
        if weight is None:
            weight = self.loss.usual_weight
        self.weight = finite_number("weight", weight)
        self.prefixes = [positive_integer("prefixes", one) for one in prefixes]

    def build(self, input_shape):
        names = ("predictions", "embeddings", "those of the teacher")
        check_list_of_inputs(input_shape, self.name, *names)
        dim = input_shape[1][-1]
        require(
            dim is None or max(self.prefixes, default=0) <= dim,
            "prefixes",
            f"at most {dim}, the size of the embeddings",
            self.prefixes,
        )

    def call(self, inputs, training=False):
        predictions, embeddings, teacher = inputs
        added = ops.zeros_like(predictions[:, :1])
        if training:
            # Not `add_loss`: the replicas would share the list of its values.
            parts = [embeddings[:, :size] for size in self.prefixes]
            values = sum(
                self.loss.call(teacher, part) for part in [*parts, embeddings]
            )
            axes = (-1, *[1] * (len(predictions.shape) - 1))
            added = added + ops.reshape(self.weight * values, axes)
        return ops.concatenate([predictions, added], axis=1)

    def compute_output_shape(self, input_shape):
        batch, entries, *others = input_shape[0]
        return (batch, entries + 1, *others)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
