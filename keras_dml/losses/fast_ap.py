"""Average precision by a histogram of distances."""

import keras
from keras import ops

from keras_dml.checks import positive_integer
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import count, masked_sum

# The largest squared distance of two unit vectors.
LARGEST = 4.0
# Each is some operations of a step; with 1000, compiling takes minutes.
MOST_BINS = 100


def fast_ap_loss(squared_distance, positive, negative, bins=10):
    """Computes one minus the average precision by histogram of every row.

    Memory is a few matrices `(rows, columns)`, and time grows with `bins`.

    Args:
        squared_distance: Float tensor `(rows, columns)`, from 0 to 4.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        bins: Integer, see `FastAP`. Defaults to `10`.

    Returns:
        Tensor `(rows,)` from 0 to 1; zero for a row without a positive.

    Example:

    >>> distance = np.array([[0.0, 4.0]])
    >>> near, far = np.array([[True, False]]), np.array([[False, True]])
    >>> float(fast_ap_loss(distance, near, far)[0])
    0.0
    >>> float(fast_ap_loss(distance, far, near)[0])  # one negative before
    0.5
    """
    width = LARGEST / bins
    relevant = found = precision = 0.0
    for bin in range(bins + 1):
        share = ops.relu(1.0 - ops.abs(squared_distance / width - bin))
        own = masked_sum(share, positive)
        # PyTorch would change in place with `+=` what gradients need.
        relevant = relevant + own
        found = found + own + masked_sum(share, negative)
        precision = precision + ops.divide_no_nan(own * relevant, found)
    number = count(positive, squared_distance.dtype)
    precision = precision / ops.maximum(number, 1.0)
    return ops.where(number > 0, 1.0 - precision, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class FastAP(PairLoss):
    """One minus the average precision, by a histogram of distances.

    `AP_i = 1/|P_i| sum_b h+_b H+_b / H_b`

    where a pair adds to the two of the `B + 1` points between 0 and 4 that
    its squared distance lies between, in linear shares: `h+_b` of the
    positives `P_i` of row `i`, `H+_b` their sum up to `b`, and `H_b` that of
    the positives and negatives.

    The loss is the mean of `1 - AP_i` over the rows of all replicas that have
    a positive. So every row has the same value, and sample weights scale the
    whole loss.

    Args:
        bins: Integer from 1 to 100, `B`. Defaults to `10`.
        **kwargs: `miner`, `average`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `bins` is out of range, or `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=FastAP(bins=10))
    ```

    Reference:
        Cakir et al., "Deep Metric Learning to Rank", 2019.
    """

    of_unit_rows = True
    metric = "squared_euclidean"

    def __init__(self, bins=10, **kwargs):
        super().__init__(**kwargs)
        self.bins = positive_integer("bins", bins, most=MOST_BINS)

    def pair_loss(self, pairs: Pairs):
        distance = self.distances(pairs)
        values = fast_ap_loss(distance, *pairs.masks, bins=self.bins)
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))
