"""Base of the losses that make an embedding like that of a teacher."""

import abc

from keras import ops

from keras_dml import distribute
from keras_dml.checks import boolean
from keras_dml.losses.base import Loss
from keras_dml.ops.pairs import Pairs, pair_distances
from keras_dml.ops.similarities import unit_rows


class DistillationLoss(Loss, abc.ABC):
    """Base of losses that compare a batch of embeddings with a teacher's.

    Subclasses implement `distillation_loss`. The two embeddings may differ in
    size, as only relations between rows are compared. Under `tf.distribute`
    these are rows of all replicas, so that the result does not depend on the
    number of replicas.

    Args:
        normalize: Boolean, whether to divide the embeddings of both by their
            length, for a search by cosine. Defaults to `True`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Call arguments:
        y_true: Float tensor `(batch, teacher_dim)`, the embeddings of the
            teacher, which get no gradient.
        y_pred: Float tensor `(batch, dim)`, the embeddings.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If one of them is no matrix, or `y_true` is not of floats.

    Example:

    ```python
    class Mimic(DistillationLoss):
        def distillation_loss(self, teacher, embeddings):
            return ops.mean(ops.abs(teacher - embeddings), axis=1)
    ```
    """

    label_dtypes = ("float", "bfloat16")
    labels_in_words = "embeddings of the teacher, floats (batch, teacher_dim)"
    # The weight beside a loss on labels for which values are alike.
    usual_weight = 1.0

    def __init__(self, normalize=True, **kwargs):
        super().__init__(**kwargs)
        self.normalize = boolean("normalize", normalize)

    @abc.abstractmethod
    def distillation_loss(self, teacher, embeddings):
        """Returns one loss per row of a whole batch."""

    def call(self, y_true, y_pred):
        if len(y_true.shape) != 2 or len(y_pred.shape) != 2:
            raise ValueError(
                f"`y_true` and `y_pred` of the loss {self.name!r} must be "
                "embeddings of shapes (batch, teacher_dim) and (batch, dim). "
                f"Received: y_true.shape={tuple(y_true.shape)}, "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        self._flat_labels(y_true, y_pred)
        y_true = ops.stop_gradient(y_true)
        if self.normalize:
            y_true, y_pred = unit_rows(y_true), unit_rows(y_pred)
        rows = self.distillation_loss(
            distribute.all_gather(y_true), distribute.all_gather(y_pred)
        )
        own = distribute.first_row(y_pred) + ops.arange(ops.shape(y_pred)[0])
        return ops.take(rows, own, axis=0)


def distances(rows, metric="euclidean"):
    """Returns the distance of every two rows, a matrix."""
    return pair_distances(Pairs(rows, rows, None, None, 0), metric)


def mean_over_others(values):
    """Returns the mean of each row of a square matrix, without its diagonal."""
    others = ops.maximum(ops.shape(values)[1] - 1, 1)
    off = 1 - ops.eye(ops.shape(values)[0], dtype=values.dtype)
    return ops.sum(values * off, axis=1) / ops.cast(others, values.dtype)
