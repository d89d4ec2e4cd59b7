"""Relational knowledge distillation: distances and angles of a teacher."""

import keras
from keras import ops

from keras_dml.checks import not_negative, require
from keras_dml.losses.distillation import (
    DistillationLoss,
    distances,
    mean_over_others,
)
from keras_dml.ops.similarities import LEAST, unit_rows


def relational_loss(teacher, embeddings, distance_weight=1.0, angle_weight=2.0):
    """Differences of relative distances, and of angles, to those of a teacher.

    Args:
        teacher: Float tensor `(batch, teacher_dim)`.
        embeddings: Float tensor `(batch, dim)`.
        distance_weight: Float. Defaults to `1.0`.
        angle_weight: Float. Defaults to `2.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `embeddings`.

    Example:

    >>> rows = np.random.default_rng(0).normal(size=(4, 3))
    >>> float(ops.max(relational_loss(rows, 2 * rows))) < 1e-6
    True
    """
    loss = ops.zeros_like(embeddings[:, 0])
    if distance_weight:
        differences = _relative(teacher) - _relative(embeddings)
        loss += distance_weight * mean_over_others(_huber(differences))
    if angle_weight:
        differences = _cosines(teacher) - _cosines(embeddings)
        loss += angle_weight * _mean_over_triplets(_huber(differences))
    return loss


@keras.saving.register_keras_serializable(package="keras_dml")
class Relational(DistillationLoss):
    """Gives embeddings the relative distances and the angles of a teacher.

    `L = a mean_ij h(d_ij / m - d'_ij / m') + b mean_ijk h(c_ijk - c'_ijk)` over
    distinct rows, with the distance `d` of two rows, the mean `m` of all of
    them, the cosine `c` of the angle at row `i` between rows `j` and `k`, the
    same of the teacher with a prime, and the Huber loss `h(x) = x**2 / 2` if
    `|x| <= 1`, else `|x| - 1/2`. Its time and memory grow with `batch**3`.

    Args:
        distance_weight: Float, `a`. Defaults to `1.0`.
        angle_weight: Float, `b`. Defaults to `2.0`; with `0.0` no angle is
            computed.
        **kwargs: `normalize`, see `DistillationLoss`, and `reduction`, `name`
            and `dtype`, see `keras_dml.losses.Loss`. The paper's student is
            not normalized.

    Raises:
        ValueError: If a weight is negative, or both are zero.

    Example:

    ```python
    student.compile("adam", loss=Relational())
    student.fit(images, teacher.predict(images))
    ```

    Reference:
        Park et al., "Relational Knowledge Distillation", 2019, equations 6
        and 8.
    """

    def __init__(self, distance_weight=1.0, angle_weight=2.0, **kwargs):
        super().__init__(**kwargs)
        self.distance_weight = not_negative("distance_weight", distance_weight)
        self.angle_weight = not_negative("angle_weight", angle_weight)
        require(
            self.distance_weight or self.angle_weight,
            "distance_weight",
            "above 0 where `angle_weight` is 0",
            distance_weight,
            "Without weights the loss compares nothing.",
        )

    def distillation_loss(self, teacher, embeddings):
        return relational_loss(
            teacher, embeddings, self.distance_weight, self.angle_weight
        )


def _huber(x):
    x = ops.abs(x)
    return ops.where(x <= 1, 0.5 * ops.square(x), x - 0.5)


def _relative(rows):
    """Returns the distances of all rows, in parts of their mean."""
    found = distances(rows)
    return ops.divide_no_nan(found, ops.mean(mean_over_others(found)))


def _cosines(rows):
    """Returns the cosines of the angles at each row, `(apex, row, row)`."""
    apart = rows[None, :] - rows[:, None]
    squared = ops.sum(ops.square(apart), axis=-1, keepdims=True)
    # Equal rows have no direction; `unit_rows` would give them a gradient of
    # a million.
    directions = ops.where(squared > LEAST, unit_rows(apart), 0.0)
    return ops.matmul(directions, ops.transpose(directions, (0, 2, 1)))


def _mean_over_triplets(values):
    """Returns the mean over pairs of distinct rows other than the apex."""
    count = ops.shape(values)[0]
    other = 1 - ops.eye(count, dtype=values.dtype)
    mask = other[:, :, None] * other[:, None, :] * other[None]
    triplets = ops.cast(ops.maximum((count - 1) * (count - 2), 1), values.dtype)
    return ops.sum(values * mask, axis=(1, 2)) / triplets
