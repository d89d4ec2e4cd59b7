"""Multi-class N-pair loss."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import finite_number
from keras_dml.losses.checks import full_precision
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import pair_similarities
from keras_dml.ops.reductions import batch_mean, count, log_sum_exp, masked_sum


def n_pair_loss(logits, positive, candidates=None):
    """Cross-entropy of every row with its positives among the candidates.

    `L_i = log sum_j exp(z_ij) - mean_{j in P_i} z_ij`.

    Args:
        logits: Float tensor `(rows, columns)`, inner products of anchors and
            positives.
        positive: Boolean tensor `(rows, columns)`, the columns `P_i` of the
            class of each row.
        candidates: Boolean tensor `(columns,)`, the columns to sum over.
            Defaults to `None`, all of them.

    Returns:
        Tensor `(rows,)` of the dtype of `logits`; zero for a row without a
        positive.

    Example:

    ```python
    # NpairsLoss()(labels, logits) of tensorflow-addons.
    same = labels[:, None] == labels[None, :]
    loss = ops.mean(n_pair_loss(logits, same))
    ```
    """
    logits = ops.convert_to_tensor(logits)
    if candidates is None:
        candidates = ops.ones_like(logits[0], dtype="bool")
    number = count(positive, logits.dtype)
    own = masked_sum(logits, positive) / ops.maximum(
        number, ops.ones_like(number)
    )
    everyone = ops.logical_and(
        ops.ones_like(logits, dtype="bool"), candidates[None, :]
    )
    values = log_sum_exp(logits, everyone) - own
    return ops.where(number > 0, values, ops.zeros_like(values))


@keras.saving.register_keras_serializable(package="keras_dml")
class NPair(PairLoss):
    """One pair of each class, told from the pairs of all other classes.

    `L = mean_a [log sum_b exp(x_a . y_b) - x_a . y_a] + r mean_i |x_i|**2`

    with the first row `x_a` of every class of the batch that has a second
    one, `y_a`. Further rows of the class only count in the second term. The
    embeddings are not normalized: the cosines of so few classes are too flat
    for a softmax without a temperature, and the term with `r` keeps lengths
    in bounds instead.

    With a matrix of pairs in place of labels, `x_a` has no positive before
    it, `y` has one, and several `y` of an anchor share its target.

    The loss is one number for the whole batch, of all replicas. So every row
    has the same value, and sample weights scale all of the loss.

    Args:
        l2: Float, `r`. Defaults to `0.02`.
        normalize: Boolean, whether to divide embeddings by their length.
            Defaults to `False`.
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"n_pair"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Raises:
        ValueError: If `l2` is not finite.

    Example:

    ```python
    model.compile("adam", loss=NPair(l2=0.02))
    ```

    Reference:
        Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss
        Objective", 2016, equation 7 and section 3.2.2.
    """

    within_batch = True

    def __init__(
        self,
        l2=0.02,
        normalize=False,
        reduction="sum_over_batch_size",
        name="n_pair",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )
        self.l2 = finite_number("l2", l2)
        self.normalize = normalize

    def pair_loss(self, pairs):
        positive = ops.cast(pairs.positive, "int32")
        turn = _turns(distribute.all_gather(positive))
        rows = ops.arange(ops.shape(positive)[0]) + pairs.first_row
        anchors = ops.equal(ops.take(turn, rows), 0)
        candidates = ops.equal(turn, 1)
        targets = ops.logical_and(pairs.positive, candidates[None, :])
        targets = ops.logical_and(targets, anchors[:, None])
        values = n_pair_loss(pair_similarities(pairs), targets, candidates)
        number = ops.cast(ops.any(targets, axis=1), values.dtype)
        lengths = ops.sum(ops.square(pairs.embeddings), axis=1)
        return batch_mean(values, number) + self.l2 * batch_mean(
            lengths, ops.ones_like(lengths)
        )

    def get_config(self):
        config = super().get_config()
        config.update({"l2": self.l2, "normalize": self.normalize})
        return config


def _turns(positive):
    """How many earlier rows of the batch belong to a row, for each."""
    rows = ops.arange(ops.shape(positive)[0])
    earlier = ops.less(rows[None, :], rows[:, None])
    return ops.sum(ops.where(earlier, positive, 0), axis=1)
