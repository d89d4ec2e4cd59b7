"""Multi-class N-pair loss."""

import keras
from keras import ops

from keras_dml.checks import finite_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import batch_mean, log_sum_exp, masked_mean
from keras_dml.ops.views import first_pairs


def n_pair_loss(logits, positive, candidates=None):
    """Computes the cross-entropy of each row's positives among candidates.

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
    everyone = ops.broadcast_to(candidates[None, :], ops.shape(logits))
    values = log_sum_exp(logits, everyone) - masked_mean(logits, positive)
    return ops.where(ops.any(positive, axis=1), values, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class NPair(PairLoss):
    """Compares one pair of each class with the pairs of all other classes.

    `L = mean_a [log sum_b exp(x_a . y_b) - x_a . y_a] + r mean_i |x_i|**2`

    where `x_a` is the first and `y_a` the second row of a class in the batch;
    a class with one row has no such pair. Further rows of a class count in
    the second term only. The embeddings are not normalized: a softmax of
    cosines without a temperature is too flat, and the term with `r` bounds
    the lengths instead.

    With a matrix of pairs in place of labels, `x_a` is a row without an
    earlier positive and `y` a row with exactly one. An anchor with several
    `y` takes the mean of its products with them.

    The loss is one number for the whole batch of all replicas. So every row
    has the same value, and sample weights scale the whole loss.

    Args:
        l2: Float, `r`. Defaults to `0.02`.
        normalize: Boolean, whether to divide embeddings by their length.
            Defaults to `False`.
        **kwargs: `average`, `similarity`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `l2` is not finite, or there is a miner.

    Example:

    ```python
    model.compile("adam", loss=NPair(l2=0.02))
    ```

    Reference:
        Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss
        Objective", 2016, equation 7 and section 3.2.2.
    """

    within_batch = True
    takes_miner = False

    def __init__(self, l2=0.02, normalize=False, **kwargs):
        super().__init__(normalize=normalize, **kwargs)
        self.l2 = finite_number("l2", l2)

    def pair_loss(self, pairs: Pairs):
        targets, candidates = first_pairs(pairs)
        values = n_pair_loss(self.similarities(pairs), targets, candidates)
        lengths = ops.sum(ops.square(pairs.embeddings), axis=1)
        return self.mean(pairs)(
            values, ops.any(targets, axis=1)
        ) + self.l2 * batch_mean(lengths, ops.ones_like(lengths))
