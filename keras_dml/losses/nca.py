"""Neighborhood component analysis on the rows of a batch."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_sum_exp


def nca_loss(logits, positive, negative):
    """Computes `log sum_{j != i} exp(z_ij) - log sum_{P_i} exp(z_ij)`.

    Args:
        logits: Float tensor `(rows, columns)`, minus the squared distances
            divided by the temperature.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.

    Returns:
        Tensor `(rows,)` of the dtype of `logits`, never negative; zero for a
        row without a positive.

    Example:

    >>> logits = np.zeros((1, 4))
    >>> positive = np.array([[False, True, False, False]])
    >>> negative = np.array([[False, False, True, True]])
    >>> float(nca_loss(logits, positive, negative)[0])  # log(3)
    1.0986122886681098
    """
    every = log_sum_exp(logits, ops.logical_or(positive, negative))
    # Where all pairs are positive, rounding can make the difference negative.
    values = ops.relu(every - log_sum_exp(logits, positive))
    return ops.where(ops.any(positive, axis=1), values, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class NCA(PairLoss):
    """NCA: raises the probability that a row draws a neighbor of its class.

    `L = mean_i -log sum_{j in P_i} p_ij`,
    `p_ij = exp(-|x_i - x_j|**2 / T) / sum_{k != i} exp(-|x_i - x_k|**2 / T)`

    over the rows `i` that have a positive; the mean leaves out the others. It
    is the second objective of the paper, the logarithm of the probability of
    a right neighbor. With one positive for each row it equals `SupCon` with
    half the temperature.

    The mean is over the batch of all replicas. So every row has the same
    value, and sample weights scale the whole loss.

    Args:
        temperature: Positive float, `T`. Defaults to `1.0`.
        normalize: Boolean, whether to divide embeddings by their length; the
            paper does not. Defaults to `True`.
        **kwargs: `miner`, `average`, `similarity`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `temperature` is not positive.

    Example:

    ```python
    model.compile("adam", loss=NCA(temperature=0.1))
    ```

    Reference:
        Goldberger et al., "Neighbourhood Components Analysis", 2004, equations
        1 and 6.
    """

    metric = "squared_euclidean"

    def __init__(self, temperature=1.0, **kwargs):
        super().__init__(**kwargs)
        self.temperature = positive_number("temperature", temperature)

    def pair_loss(self, pairs: Pairs):
        squared = self.distances(pairs)
        values = nca_loss(-squared / self.temperature, *pairs.masks)
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))
