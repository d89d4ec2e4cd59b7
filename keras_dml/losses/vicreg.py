"""Variance, invariance and covariance of two views of each image."""

import keras
from keras import ops

from keras_dml.checks import not_negative, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.views import two_views


def vicreg_loss(
    first,
    second,
    chosen=None,
    invariance=25.0,
    variance=25.0,
    covariance=1.0,
    epsilon=1e-4,
):
    """Computes `a mean |x - y|**2 + b (v(X) + v(Y)) / 2 + c (w(X) + w(Y))`.

    Args:
        first: Float tensor `(rows, dim)`, `X`.
        second: Float tensor `(rows, dim)`, `Y`, the other view of each row.
        chosen: Boolean tensor `(rows,)`, which rows count. Defaults to
            `None`, all.
        invariance: Float, `a`. Defaults to `25.0`.
        variance: Float, `b`. Defaults to `25.0`.
        covariance: Float, `c`. Defaults to `1.0`.
        epsilon: Float, added to variances. Defaults to `1e-4`.

    Returns:
        Scalar of the dtype of `first`, see `VICReg`.

    Example:

    >>> x = np.array([[1.0, 1.0], [-1.0, -1.0]])  # variances and covariance 2
    >>> float(vicreg_loss(x, x))  # twice (2**2 + 2**2) / 2
    8.0
    """
    first = ops.convert_to_tensor(first)
    if chosen is None:
        chosen = ops.ones_like(first[:, 0], dtype="bool")
    weight = ops.cast(chosen, first.dtype)[:, None]
    number = ops.sum(weight)
    shifts = ops.sum(weight * ops.square(first - second))
    dim = ops.cast(ops.shape(first)[1], first.dtype)
    loss = invariance * shifts / (ops.maximum(number, 1.0) * dim)
    spread = ops.zeros_like(loss)
    for view in (first, second):
        mean = ops.sum(weight * view, axis=0) / ops.maximum(number, 1.0)
        centered = weight * (view - mean)
        matrix = ops.matmul(ops.transpose(centered), centered)
        matrix = matrix / ops.maximum(number - 1.0, 1.0)
        deviation = ops.sqrt(ops.diagonal(matrix) + epsilon)
        spread += 0.5 * variance * ops.mean(ops.relu(1.0 - deviation))
        others = 1.0 - ops.eye(ops.shape(matrix)[0], dtype=matrix.dtype)
        spread += covariance * ops.sum(ops.square(matrix * others)) / dim
    # One row has no variance.
    return loss + ops.where(number > 1.0, spread, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class VICReg(PairLoss):
    """Makes two views of an image alike, and numbers of embeddings differ.

    `L = a mean_i |x_i - y_i|**2 / d + b (v(X) + v(Y)) / 2 + c (w(X) + w(Y))`

    with the rows `x_i` of the first and `y_i` of the second views, of length
    `d`. `v(X) = mean_k [1 - sqrt(C_kk + e)]_+` keeps the deviation of every
    number of the embedding above 1, and `w(X) = sum_{k != l} C_kl**2 / d` its
    numbers uncorrelated, with the covariances `C` of the views `X`. No row is
    pushed away from another.

    A class is an image, whose first two rows in the batch are its views;
    further rows, and classes of one row, do not count. Classes of several
    images work the same: their first two images are pulled together.

    The loss is one number for the whole batch of all replicas. So every row
    has the same value, and sample weights scale the whole loss.

    Args:
        invariance: Float, `a`, at least 0. Defaults to `25.0`.
        variance: Float, `b`, at least 0. Defaults to `25.0`.
        covariance: Float, `c`, at least 0. Defaults to `1.0`.
        epsilon: Positive float, `e`. Defaults to `1e-4`.
        normalize: Boolean, whether to divide embeddings by their length.
            Defaults to `False`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If a weight is negative, `epsilon` is not positive, or
            there is a miner.

    Example:

    ```python
    # A batch holds both views of each of its images.
    two = tf.data.Dataset.from_tensor_slices(images).batch(64, True)
    ids = tf.tile(tf.range(64), [2])
    views = two.map(lambda x: (tf.concat([augment(x), augment(x)], 0), ids))
    model.compile("adam", loss=VICReg())
    model.fit(views)
    ```

    Reference:
        Bardes, Ponce and LeCun, "VICReg: Variance-Invariance-Covariance
        Regularization for Self-Supervised Learning", 2022, equations 1 to 6,
        with the means over `d` and over both views of its algorithm 1.
    """

    within_batch = True
    takes_miner = False
    takes_any_metric = False
    takes_any_average = False

    def __init__(
        self,
        invariance=25.0,
        variance=25.0,
        covariance=1.0,
        epsilon=1e-4,
        normalize=False,
        **kwargs,
    ):
        super().__init__(normalize=normalize, **kwargs)
        self.invariance = not_negative("invariance", invariance)
        self.variance = not_negative("variance", variance)
        self.covariance = not_negative("covariance", covariance)
        self.epsilon = positive_number("epsilon", epsilon)

    def pair_loss(self, pairs: Pairs):
        loss = vicreg_loss(
            *two_views(pairs),
            invariance=self.invariance,
            variance=self.variance,
            covariance=self.covariance,
            epsilon=self.epsilon,
        )
        return ops.broadcast_to(loss, ops.shape(pairs.embeddings)[:1])
