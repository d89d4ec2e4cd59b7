"""The correlation of two views of each image, as close to 1 as can be."""

import keras
from keras import ops

from keras_dml.checks import not_negative, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.views import two_views


def barlow_twins_loss(
    first, second, chosen=None, redundancy=0.005, epsilon=1e-5
):
    """Computes `sum_k (1 - C_kk)**2 + r sum_{k != l} C_kl**2`.

    Args:
        first: Float tensor `(rows, dim)`.
        second: Float tensor `(rows, dim)`, the other view of each row.
        chosen: Boolean tensor `(rows,)`, which rows count. Defaults to
            `None`, all.
        redundancy: Float, `r`. Defaults to `0.005`.
        epsilon: Float, added to variances. Defaults to `1e-5`.

    Returns:
        Scalar of the dtype of `first`, see `BarlowTwins`.

    Example:

    >>> x = np.array([[1.0, 1.0], [-1.0, -1.0]])  # both numbers correlate
    >>> round(float(barlow_twins_loss(x, x, redundancy=0.5)), 4)
    1.0
    """
    first = ops.convert_to_tensor(first)
    if chosen is None:
        chosen = ops.ones_like(first[:, 0], dtype="bool")
    weight = ops.cast(chosen, first.dtype)[:, None]
    number = ops.maximum(ops.sum(weight), 1.0)

    def standardized(view):
        centered = weight * (view - ops.sum(weight * view, axis=0) / number)
        squares = ops.sum(ops.square(centered), axis=0) / number
        return centered / ops.sqrt(squares + epsilon)

    first, second = standardized(first), standardized(second)
    matrix = ops.matmul(ops.transpose(first), second) / number
    itself = ops.eye(ops.shape(matrix)[0], dtype=matrix.dtype)
    weights = redundancy + (1.0 - redundancy) * itself
    loss = ops.sum(weights * ops.square(itself - matrix))
    # One row has no variance.
    return ops.where(number > 1.0, loss, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class BarlowTwins(PairLoss):
    """Correlates each number of two views, and no number with another.

    `L = sum_k (1 - C_kk)**2 + r sum_{k != l} C_kl**2`

    with the correlation `C_kl = mean_i u_ik v_il` of the numbers `k` of the
    first views and `l` of the second, each made of mean 0 and variance 1 over
    the batch: `u_ik = (x_ik - mean) / sqrt(variance + e)`. No row is pushed
    away from another.

    A class is an image, whose first two rows in the batch are its views;
    further rows, and classes of one row, do not count. Classes of several
    images work the same: their first two images are made alike.

    The loss is one number for the whole batch of all replicas. So every row
    has the same value, and sample weights scale the whole loss.

    Args:
        redundancy: Float, `r`, at least 0. Defaults to `0.005`.
        epsilon: Positive float, `e`. Defaults to `1e-5`.
        normalize: Boolean, whether to divide embeddings by their length
            first. Defaults to `False`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `redundancy` is negative, `epsilon` is not positive, or
            there is a miner.

    Example:

    ```python
    # A batch holds both views of each of its images.
    two = tf.data.Dataset.from_tensor_slices(images).batch(64, True)
    ids = tf.tile(tf.range(64), [2])
    views = two.map(lambda x: (tf.concat([augment(x), augment(x)], 0), ids))
    model.compile("adam", loss=BarlowTwins())
    model.fit(views)
    ```

    Reference:
        Zbontar et al., "Barlow Twins: Self-Supervised Learning via Redundancy
        Reduction", 2021, equations 1 and 2; `epsilon` is that of the batch
        normalization in its algorithm 1.
    """

    within_batch = True
    takes_miner = False
    takes_any_metric = False
    takes_any_average = False

    def __init__(
        self, redundancy=0.005, epsilon=1e-5, normalize=False, **kwargs
    ):
        super().__init__(normalize=normalize, **kwargs)
        self.redundancy = not_negative("redundancy", redundancy)
        self.epsilon = positive_number("epsilon", epsilon)

    def pair_loss(self, pairs: Pairs):
        loss = barlow_twins_loss(
            *two_views(pairs), redundancy=self.redundancy, epsilon=self.epsilon
        )
        return ops.broadcast_to(loss, ops.shape(pairs.embeddings)[:1])
