"""Angular loss: bounds the angle at the negative of a triplet."""

import math

import keras
from keras import ops

from keras_dml.checks import in_interval
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.gradients import shared_slopes, with_slopes
from keras_dml.ops.pairs import (
    Pairs,
    gram_matrix,
    over_positives,
    pair_similarities,
)
from keras_dml.ops.reductions import (
    batch_mean,
    count,
    log_one_plus_sum_exp,
)


def angular_loss(
    similarity, between_columns, positive, negative, angle=math.pi / 4
):
    """Averages the positive pairs of a batch, see `Angular`.

    Memory is a few matrices `(rows, columns)` and `(columns, columns)`; the
    time grows with the largest number of positives of a row. Only first
    derivatives are correct.

    Args:
        similarity: Float tensor `(rows, columns)`, the cosines.
        between_columns: Float tensor `(columns, columns)`, the cosines of the
            columns with each other: `similarity` itself on one device.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        angle: Float, in radians. Defaults to a quarter of pi.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        positive pairs of all replicas.

    Example:

    >>> cosines = np.zeros((2, 3)), np.zeros((3, 3))
    >>> positive = np.array([[False, True, False], [True, False, False]])
    >>> negative = np.array([[False, False, True], [False, False, True]])
    >>> float(angular_loss(*cosines, positive, negative)[0])  # log(1 + exp(0))
    0.6931471805599453
    """
    similarity = ops.convert_to_tensor(similarity)
    between_columns = ops.convert_to_tensor(between_columns)
    dtype = similarity.dtype
    own_fixed = ops.stop_gradient(similarity)
    fixed = ops.stop_gradient(between_columns)
    tangent = math.tan(angle) ** 2
    of_negative, of_positive = 4.0 * tangent, 2.0 * (1.0 + tangent)

    def step(state, own, there, itself):
        values, slopes, between = state
        itself = ops.cast(ops.logical_and(itself, there), dtype)
        # The row of `between_columns` of each positive.
        exponents = (
            of_negative * (own_fixed + ops.matmul(itself, fixed))
            - of_positive * own
        )
        chosen = ops.logical_and(negative, there)
        value = log_one_plus_sum_exp(exponents, chosen, axis=1)
        nothing = ops.cast(float("-inf"), dtype)
        exponents = ops.where(chosen, exponents, nothing)
        share = ops.exp(exponents - value[:, None])
        slope = of_negative * share
        total = of_positive * ops.sum(share, axis=1, keepdims=True)
        return (
            values + value,
            slopes + slope - total * itself,
            between + ops.matmul(ops.transpose(itself), slope),
        )

    zeros = ops.zeros_like(own_fixed)
    values, slopes, between = over_positives(
        own_fixed,
        positive,
        step,
        (zeros[:, 0], zeros, ops.zeros_like(fixed)),
    )
    totals = with_slopes(values, slopes, similarity)
    totals = totals + shared_slopes(between, between_columns, values)
    return batch_mean(totals, count(positive, dtype))


@keras.saving.register_keras_serializable(package="keras_dml")
class Angular(PairLoss):
    """Bounds the angle at the negative of each triplet.

    `L = mean log(1 + sum_{n in N_a} exp(4 t (x_a + x_p) . x_n`
    `- 2 (1 + t) x_a . x_p))`, `t = tan(angle)^2`

    over the positive pairs `(a, p)` of the batch, with rows `x` of length 1
    and the rows `N_a` of other classes. The exponent is below `6 t - 2`, a
    constant that the paper leaves out, where `|x_a - x_p| / 2` is less than
    `tan(angle)` times the distance of the negative and the middle of the pair,
    whatever the size of the triangle.

    It is one number for the whole batch of all replicas. So every row has the
    same value, and sample weights scale the whole loss.

    Args:
        angle: Float, in radians, between 0 and half of pi. Defaults to a
            quarter of pi; the paper takes 36 to 55 degrees, 0.63 to 0.96.
        **kwargs: `miner`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `angle` is out of range, or `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=Angular(angle=0.7))
    ```

    Reference:
        Wang et al., "Deep Metric Learning with Angular Loss", 2017.
    """

    of_unit_rows = True
    takes_any_average = False
    within_batch = True

    def __init__(self, angle=math.pi / 4, **kwargs):
        super().__init__(**kwargs)
        self.angle = in_interval(
            "angle",
            angle,
            0,
            math.pi / 2,
            "neither",
            "It is an angle in radians; 40 degrees are 0.7.",
        )

    def pair_loss(self, pairs: Pairs):
        similarity = pair_similarities(pairs)
        between = (
            similarity
            if pairs.references is pairs.embeddings
            else gram_matrix(pairs.references)
        )
        return angular_loss(similarity, between, *pairs.masks, angle=self.angle)
