"""The relaxed contrastive loss: similarities of a teacher for labels."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.distillation import DistillationLoss, distances
from keras_dml.ops.similarities import unit_rows


def relaxed_contrastive_loss(teacher, embeddings, margin=1.0, bandwidth=1.0):
    """A contrastive loss whose pairs are as positive as a teacher finds them.

    Args:
        teacher: Float tensor `(batch, teacher_dim)`.
        embeddings: Float tensor `(batch, dim)`.
        margin: Float. Defaults to `1.0`.
        bandwidth: Float. Defaults to `1.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `embeddings`.

    Example:

    >>> rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> same, other = rows, rows[[0, 2, 1]]
    >>> same, other = (
    ...     float(ops.mean(relaxed_contrastive_loss(rows, one)))
    ...     for one in (same, other)
    ... )
    >>> same < other
    True
    """
    squared = distances(unit_rows(teacher), "squared_euclidean")
    positive = ops.stop_gradient(ops.exp(-squared / bandwidth))
    found = distances(embeddings)
    relative = ops.divide_no_nan(found, ops.mean(found, axis=1, keepdims=True))
    pull = positive * ops.square(relative)
    push = (1 - positive) * ops.square(ops.relu(margin - relative))
    others = 1 - ops.eye(ops.shape(found)[0], dtype=found.dtype)
    return ops.sum((pull + push) * others, axis=1)


@keras.saving.register_keras_serializable(package="keras_dml")
class RelaxedContrastive(DistillationLoss):
    """A contrastive loss that takes a teacher's similarities for labels.

    `L = mean_i sum_j (w_ij r_ij**2 + (1 - w_ij) max(0, m - r_ij)**2)` over the
    other rows of a batch of `n`, with the similarity by the teacher
    `w_ij = exp(-|t_i - t_j|**2 / b)` of its embeddings of length 1, and the
    relative distance `r_ij = |x_i - x_j| / (sum_k |x_i - x_k| / n)`.

    Args:
        margin: Float above 0, `m`. Defaults to `1.0`.
        bandwidth: Float above 0, `b`. Defaults to `1.0`.
        **kwargs: `normalize`, see `DistillationLoss`, and `reduction`, `name`
            and `dtype`, see `keras_dml.losses.Loss`. The paper's student is
            not normalized.

    Raises:
        ValueError: If a number is not above 0.

    Example:

    ```python
    student.compile("adam", loss=RelaxedContrastive())
    student.fit(images, teacher.predict(images))
    ```

    Reference:
        Kim et al., "Embedding Transfer with Label Relaxation for Improved
        Metric Learning", 2021, equations 3 to 5.
    """

    def __init__(self, margin=1.0, bandwidth=1.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = positive_number("margin", margin)
        self.bandwidth = positive_number("bandwidth", bandwidth)

    def distillation_loss(self, teacher, embeddings):
        return relaxed_contrastive_loss(
            teacher, embeddings, self.margin, self.bandwidth
        )
