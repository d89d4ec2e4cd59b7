"""Each row of a batch against all rows of other classes."""

import keras

from keras_dml.checks import positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_one_plus_sum_exp


def instance_loss(similarity, negative, scale=64.0):
    """Computes `log(1 + sum_{N_i} exp(scale (s_ij - 1)))` of each row.

    Args:
        similarity: Float tensor `(rows, columns)`, cosines.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        scale: Float. Defaults to `64.0`.

    Returns:
        Tensor `(rows,)` of the dtype of `similarity`, never negative; zero for
        a row without a negative.

    Example:

    >>> similarity = np.array([[1.0, 1.0]])
    >>> negative = np.array([[False, True]])
    >>> float(instance_loss(similarity, negative)[0])  # log(2)
    0.6931471805599453
    """
    return log_one_plus_sum_exp(scale * (similarity - 1.0), negative, axis=1)


@keras.saving.register_keras_serializable(package="keras_dml")
class Instance(PairLoss):
    """Tells each row apart from all rows of other classes.

    `L_i = -log(exp(s_ii / T) / (exp(s_ii / T) + sum_{j in N_i} exp(s_ij / T)))`

    with the scale `1 / T`, cosines `s_ij`, so `s_ii = 1`, and the rows `N_i` of
    other classes: a softmax over the batch whose every row is its own class.
    It spreads images and draws none together, so that it needs no labels: give
    each image a class of its own. With classes, rows of one class do not repel
    each other; add a loss that draws them together, with `WeightedSum`.

    Args:
        scale: Positive float, `1 / T`. Defaults to `64.0`.
        **kwargs: `miner`, `average`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `scale` is not positive, or `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=WeightedSum([NTXent(), Instance(scale=16.0)]))
    ```

    Reference:
        Zheng et al., "Dual-Path Convolutional Image-Text Embeddings with
        Instance Loss", 2020, equation 6, with the rows of the batch in place
        of learned weights.
    """

    of_unit_rows = True
    usual_average = None

    def __init__(self, scale=64.0, **kwargs):
        super().__init__(**kwargs)
        self.scale = positive_number("scale", scale)

    def pair_loss(self, pairs: Pairs):
        similarity = self.similarities(pairs)
        values = instance_loss(similarity, pairs.negative, self.scale)
        return self.mean(pairs)(values)
