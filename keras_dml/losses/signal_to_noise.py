"""Contrastive loss on ratios of variances."""

import keras
from keras import ops

from keras_dml.checks import finite_number, not_negative
from keras_dml.losses.contrastive import contrastive_loss
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import NON_ZERO
from keras_dml.ops.distances import noise_ratios
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import batch_mean


def signal_to_noise_loss(
    embeddings,
    references,
    positive,
    negative,
    positive_margin=0.0,
    negative_margin=1.0,
    mean=NON_ZERO,
):
    """Computes the contrastive loss of `d_ij = var(x_i - x_j) / var(x_i)`.

    Args:
        embeddings: Float tensor `(rows, dim)`.
        references: Float tensor `(columns, dim)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        positive_margin: Float. Defaults to `0.0`.
        negative_margin: Float. Defaults to `1.0`.
        mean: See `contrastive_loss`. Defaults to that of the terms that are
            not zero.

    Returns:
        Tensor `(rows,)`, the same value in every entry, see `SignalToNoise`.

    Example:

    >>> x = np.array([[1.0, -1.0], [1.0, 1.0]])  # var(x_0) = var(x_0 - x_1)
    >>> one = np.array([[False, True], [False, False]])
    >>> float(signal_to_noise_loss(x, x, one, ~one & False)[0])
    1.0
    """
    ratio = noise_ratios(embeddings, references)
    return contrastive_loss(
        ratio - positive_margin,
        negative_margin - ratio,
        positive,
        negative,
        mean=mean,
    )


@keras.saving.register_keras_serializable(package="keras_dml")
class SignalToNoise(PairLoss):
    """Contrastive loss with the noise that one row adds to another.

    `L = mean_P [d_ij - d+]_+ + mean_N [d- - d_ij]_+ + r mean_i |sum_k x_ik|`

    with `d_ij = var(x_i - x_j) / var(x_i)` over the entries of the vectors:
    the variance of the noise by which row `j` differs from the signal of the
    anchor `i`. It is not symmetric. Each mean is over the pairs of the batch
    whose term is not zero. The last term keeps the mean of a row at zero, for
    which the ratio is a distance.

    It is one number for the whole batch of all replicas. So every row has the
    same value, and sample weights scale the whole loss.

    Args:
        positive_margin: Float, `d+`. Defaults to `0.0`.
        negative_margin: Float, `d-`. Defaults to `1.0`.
        zero_mean: Float, `r`, at least 0. Defaults to `0.0`.
        **kwargs: `normalize`, `miner`, `average`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a margin is not finite, or `zero_mean` is negative.

    Example:

    ```python
    model.compile("adam", loss=SignalToNoise(zero_mean=0.1))
    ```

    Reference:
        Yuan et al., "Signal-to-Noise Ratio: A Robust Distance Metric for Deep
        Metric Learning", 2019.
    """

    metric = "signal_to_noise"
    takes_any_metric = False
    usual_average = "non_zero"

    def __init__(
        self,
        positive_margin=0.0,
        negative_margin=1.0,
        zero_mean=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.positive_margin = finite_number("positive_margin", positive_margin)
        self.negative_margin = finite_number("negative_margin", negative_margin)
        self.zero_mean = not_negative("zero_mean", zero_mean)

    def pair_loss(self, pairs: Pairs):
        loss = signal_to_noise_loss(
            pairs.embeddings,
            pairs.references,
            *pairs.masks,
            positive_margin=self.positive_margin,
            negative_margin=self.negative_margin,
            mean=self.mean(pairs),
        )
        sums = ops.abs(ops.sum(pairs.embeddings, axis=1))
        return loss + self.zero_mean * batch_mean(sums, ops.ones_like(sums))
