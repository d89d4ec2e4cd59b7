"""A differentiable average precision."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs, sum_over_positives
from keras_dml.ops.reductions import count


def smooth_ap_loss(similarity, positive, negative, temperature=0.01):
    """Computes one minus the smoothed average precision of every row.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row. Only first derivatives are correct.

    Args:
        similarity: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        temperature: Float, `T` in `SmoothAP`. Defaults to `0.01`.

    Returns:
        Tensor `(rows,)` from 0 to 1; zero for a row without a positive.

    Example:

    >>> similarity = np.array([[0.5, 0.5]])  # the ranks 1 + 1/2
    >>> first, second = np.array([[True, False]]), np.array([[False, True]])
    >>> float(smooth_ap_loss(similarity, first, second)[0])  # 1 - 1 / 1.5
    0.33333333333333337
    """
    similarity = ops.convert_to_tensor(similarity)
    dtype = similarity.dtype
    fixed = ops.stop_gradient(similarity)
    share = 1.0 / ops.maximum(count(positive, dtype), 1.0)[:, None]
    negative = ops.cast(negative, dtype)

    def term(own, there, itself):
        weight = ops.where(there, share, 0.0)
        others = ops.cast(ops.logical_and(positive, ~itself), dtype)
        before = ops.sigmoid((fixed - own) / temperature)
        rank = 1.0 + ops.sum(others * before, axis=1, keepdims=True)
        all_ranks = rank + ops.sum(negative * before, axis=1, keepdims=True)
        by_before = (
            others * (all_ranks - rank) - negative * rank
        ) / ops.square(all_ranks)
        slope = weight * by_before * before * (1.0 - before) / temperature
        return (weight * rank / all_ranks)[:, 0], slope

    precision = sum_over_positives(similarity, positive, term)
    return ops.where(ops.any(positive, axis=1), 1.0 - precision, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class SmoothAP(PairLoss):
    """One minus the average precision, with ranks smoothed by sigmoids.

    `AP_i = mean_{p in P_i} R_P / (R_P + R_N)` with

    `R_P = 1 + sum_{j in P_i, j != p} sigmoid((s_ij - s_ip) / T)` and
    `R_N = sum_{j in N_i} sigmoid((s_ij - s_ip) / T)`,

    cosines `s`, the other rows `P_i` of the class of row `i`, and the rows
    `N_i` of other classes. Classes may differ in size.

    The loss is the mean of `1 - AP_i` over the rows of all replicas that have
    a positive. So every row has the same value, and sample weights scale the
    whole loss.

    Args:
        temperature: Positive float, `T`. Defaults to `0.01`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `temperature` is not positive.

    Example:

    ```python
    model.compile("adam", loss=SmoothAP(temperature=0.01))
    ```

    Reference:
        Brown et al., "Smooth-AP: Smoothing the Path Towards Large-Scale Image
        Retrieval", 2020, equation 7.
    """

    def __init__(self, temperature=0.01, **kwargs):
        super().__init__(**kwargs)
        self.temperature = positive_number("temperature", temperature)

    def pair_loss(self, pairs: Pairs):
        values = smooth_ap_loss(
            self.similarities(pairs), *pairs.masks, temperature=self.temperature
        )
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))
