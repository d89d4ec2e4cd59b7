"""Multi-similarity loss, with or without mining."""

import keras

from keras_dml.checks import finite_number, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.distances import is_distance
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_one_plus_sum_exp

# The default base of similarities, and of distances with a minus sign: unit
# rows at a Euclidean distance of 1 have the cosine 0.5.
BASES = {False: 0.5, True: -1.0}


def multi_similarity_loss(
    similarity,
    positive,
    negative,
    alpha=2.0,
    beta=50.0,
    base=0.5,
):
    """Computes the multi-similarity loss of each row, see `MultiSimilarity`.

    Args:
        similarity: Float tensor `(rows, columns)`, the cosines.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        alpha: Float, scale of the positives. Defaults to `2.0`.
        beta: Float, scale of the negatives. Defaults to `50.0`.
        base: Float, the similarity at which a pair starts to count. Defaults
            to `0.5`.

    Returns:
        Tensor `(rows,)` of the dtype of `similarity`, never negative.

    Example:

    >>> similarity = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> positive = np.array([[False, True], [True, False]])
    >>> negative = np.zeros((2, 2), bool)
    >>> float(multi_similarity_loss(similarity, positive, negative)[0])
    0.34657359027997264
    """
    excess = similarity - base
    return (
        log_one_plus_sum_exp(-alpha * excess, positive, axis=1) / alpha
        + log_one_plus_sum_exp(beta * excess, negative, axis=1) / beta
    )


@keras.saving.register_keras_serializable(package="keras_dml")
class MultiSimilarity(PairLoss):
    """Adds the soft maxima of the positive and negative terms of each row.

    `L_i = 1/a log(1 + sum_{j in P_i} exp(-a (s_ij - l)))`
    `+ 1/b log(1 + sum_{j in N_i} exp(b (s_ij - l)))`

    with the cosine `s_ij` of two rows, the other rows `P_i` of the class of
    row `i`, the rows `N_i` of other classes, the scales `a` and `b`, and the
    base `l`. A row without pairs gives zero and counts in the mean.

    Args:
        alpha: Positive float, `a`. Defaults to `2.0`.
        beta: Positive float, `b`. Defaults to `50.0`.
        base: Float, `l`. Defaults to `None`, `0.5` for similarities and `-1.0`
            for distances, which count with a minus sign; unit rows with the
            cosine 0.5 are at the Euclidean distance 1.
        mining_margin: Float, stands for the miner
            `keras_dml.miners.MultiSimilarity(mining_margin)`, or `None` to use
            all pairs. The paper mines with `0.1`. Defaults to `None`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `alpha` or `beta` is not positive, another number is
            not finite, or there are a mining margin and a miner.

    Example:

    ```python
    model.compile("adam", loss=MultiSimilarity(mining_margin=0.1))
    ```

    Reference:
        Wang et al., "Multi-Similarity Loss with General Pair Weighting for
        Deep Metric Learning", 2019, equations 8 to 10.
    """

    usual_average = None

    def __init__(
        self, alpha=2.0, beta=50.0, base=None, mining_margin=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.alpha = positive_number("alpha", alpha)
        self.beta = positive_number("beta", beta)
        if base is None:
            base = BASES[is_distance(self.metric)]
        self.base = finite_number("base", base)
        self._set_mining_margin(mining_margin)

    def pair_loss(self, pairs: Pairs):
        values = multi_similarity_loss(
            self.similarities(pairs),
            *pairs.masks,
            alpha=self.alpha,
            beta=self.beta,
            base=self.base,
        )
        return self.mean(pairs)(values)
