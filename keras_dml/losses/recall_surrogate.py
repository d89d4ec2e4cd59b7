"""A differentiable recall at several K."""

import numbers

import keras
from keras import ops

from keras_dml.checks import positive_number, require
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs, sum_over_positives
from keras_dml.ops.reductions import count

K = (1, 2, 4, 8, 16)
# A step compares every rank with every K; no batch has as many ranks.
MOST, LARGEST = 100, 1_000_000


def recall_surrogate_loss(
    similarity,
    positive,
    negative,
    k=K,
    rank_temperature=0.01,
    k_temperature=1.0,
):
    """Computes one minus the smoothed recall of every row.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row. Only first derivatives are correct.

    Args:
        similarity: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        k: Integers, see `RecallSurrogate`. Defaults to `(1, 2, 4, 8, 16)`.
        rank_temperature: Float. Defaults to `0.01`.
        k_temperature: Float. Defaults to `1.0`.

    Returns:
        Tensor `(rows,)`; zero for a row without a positive.

    Example:

    >>> similarity = np.array([[1.0, 0.0]])  # the positive has rank 1
    >>> first, second = np.array([[True, False]]), np.array([[False, True]])
    >>> loss = recall_surrogate_loss(similarity, first, second, k=(1,))
    >>> float(loss[0])  # 1 - sigmoid(1 - 1)
    0.5
    """
    similarity = ops.convert_to_tensor(similarity)
    dtype = similarity.dtype
    fixed = ops.stop_gradient(similarity)
    others = ops.cast(ops.logical_or(positive, negative), dtype)
    number = count(positive, dtype)[:, None]
    wanted = ops.cast(ops.convert_to_tensor([k]), dtype)
    share = 1.0 / ops.maximum(ops.minimum(number, wanted), 1.0) / len(k)

    def term(own, there, itself):
        rest = ops.where(itself, 0.0, others)
        before = rest * ops.sigmoid((fixed - own) / rank_temperature)
        rank = 1.0 + ops.sum(before, axis=1, keepdims=True)
        within = ops.sigmoid((wanted - rank) / k_temperature)
        weight = ops.where(there, share, 0.0)
        by_rank = -ops.sum(
            weight * within * (1.0 - within) / k_temperature,
            axis=1,
            keepdims=True,
        )
        slope = by_rank * before * (1.0 - before) / rank_temperature
        return ops.sum(weight * within, axis=1), slope

    recall = sum_over_positives(similarity, positive, term)
    return ops.where(number[:, 0] > 0, 1.0 - recall, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class RecallSurrogate(PairLoss):
    """One minus the recall at several K, with ranks smoothed by sigmoids.

    `L_i = 1 - mean_K sum_{p in P_i} sigmoid((K - r_ip) / U) / min(K, |P_i|)`,
    `r_ip = 1 + sum_{j != p} sigmoid((s_ij - s_ip) / T)`

    with cosines `s` to all other rows of the batch, the other rows `P_i` of
    the class of row `i`, and temperatures `T` and `U`. It needs large batches:
    ranks are those within the batch.

    The loss is the mean over the rows of all replicas that have a positive.
    So every row has the same value, and sample weights scale the whole loss.

    Args:
        k: At most 100 integers from 1 to 1,000,000. Defaults to
            `(1, 2, 4, 8, 16)`.
        rank_temperature: Positive float, `T`. Defaults to `0.01`.
        k_temperature: Positive float, `U`. Defaults to `1.0`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `k` is empty, too long or holds anything else, or a
            temperature is not positive.

    Example:

    ```python
    model.compile("adam", loss=RecallSurrogate(k=(1, 2, 4, 8)))
    ```

    Reference:
        Patel, Tolias and Matas, "Recall@k Surrogate Loss with Large Batches
        and Similarity Mixup", 2022; the division by `min(K, |P_i|)` is
        that of the authors' code.
    """

    def __init__(self, k=K, rank_temperature=0.01, k_temperature=1.0, **kwargs):
        super().__init__(**kwargs)
        values = list(k) if isinstance(k, list | tuple) else [k]
        counts = all(_is_integer(one) and 0 < one <= LARGEST for one in values)
        wanted = f"1 to {MOST} integers from 1 to {LARGEST}"
        require(0 < len(values) <= MOST and counts, "k", wanted, k)
        self.k = [int(one) for one in values]
        self.rank_temperature = positive_number(
            "rank_temperature", rank_temperature
        )
        self.k_temperature = positive_number("k_temperature", k_temperature)

    def pair_loss(self, pairs: Pairs):
        values = recall_surrogate_loss(
            self.similarities(pairs),
            *pairs.masks,
            k=self.k,
            rank_temperature=self.rank_temperature,
            k_temperature=self.k_temperature,
        )
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))


def _is_integer(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
