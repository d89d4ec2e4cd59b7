"""Triplets that weigh by how many of the batch are easier."""

import keras
from keras import ops

from keras_dml.checks import positive_integer
from keras_dml.losses.histogram import add_to_points, points_around
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs, over_positives, sum_over_positives
from keras_dml.ops.reductions import batch_mean, count, over_replicas

# The largest difference of two distances between unit vectors.
LARGEST = 2.0
# More tell no places of single triplets apart that float32 can.
MOST_BINS = 100_000


def dynamic_soft_margin_loss(distance, positive, negative, bins=10):
    """Averages `w_apn (d_ap - d_an)` over all triplets of the batch.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row. Only first derivatives are correct.

    Args:
        distance: Float tensor `(rows, columns)`, from 0 to 2.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        bins: Integer, see `DynamicSoftMargin`. Defaults to `10`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        triplets of all replicas.

    Example:

    >>> distance = np.array([[0.0, 1.5, 1.0]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> loss = dynamic_soft_margin_loss(distance, positive, negative, bins=4)
    >>> float(loss[0])  # Half of its share lies at or below its bin.
    0.25
    """
    distance = ops.convert_to_tensor(distance)
    fixed = ops.stop_gradient(distance)
    others = ops.cast(negative, distance.dtype)
    width = 2.0 * LARGEST / bins

    def places(own):
        return points_around((own - fixed + LARGEST) / width, bins)

    def add(state, own, there, itself):
        chosen = ops.where(there, others, 0.0)
        share, start = places(own)
        return add_to_points(state, share, start, chosen, bins)

    def term(own, there, itself):
        _, start = places(own)
        slope = ops.where(there, -others, 0.0) * ops.take(easier, start)
        return ops.sum(slope * (fixed - own), axis=1), slope

    found = ops.zeros((bins + 1,), dtype=distance.dtype)
    found = over_replicas(ops.sum, over_positives(fixed, positive, add, found))
    easier = ops.cumsum(ops.divide_no_nan(found, ops.sum(found)))
    totals = sum_over_positives(distance, positive, term)
    dtype = distance.dtype
    number = count(positive, dtype) * count(negative, dtype)
    return batch_mean(totals, number)


@keras.saving.register_keras_serializable(package="keras_dml")
class DynamicSoftMargin(PairLoss):
    """Weighs each triplet by the share of triplets that are easier.

    `L = mean_{a,p,n} w_apn (d_ap - d_an)`,
    `w_apn = sum_{b <= b_apn} h_b`, `b_apn = floor((d_ap - d_an + 2) B / 4)`

    over the triplets of an anchor `a`, a positive `p` and a negative `n`, with
    Euclidean distances `d` of unit embeddings. `h` is the histogram of the
    differences `d_ap - d_an`, which adds a triplet to the two of the `B + 1`
    points between -2 and 2 that its difference lies between, in linear shares.
    There is no margin to choose: the hardest triplets weigh nearly 1, all but
    the share of their own bin, the easiest next to nothing. Weights are
    constants in the gradient.

    The histogram is that of the batch of all replicas. The paper takes a
    moving average over batches with one triplet for each row; here each batch
    gives all of its triplets. The loss is one number for the whole batch, and
    negative where most triplets are easy. So every row has the same value, and
    sample weights scale the whole loss.

    Args:
        bins: Integer from 1 to 100,000, `B`. Defaults to `10`.
        **kwargs: `miner`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `bins` is out of range, or `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=DynamicSoftMargin(bins=10))
    ```

    Reference:
        Zhang and Rusinkiewicz, "Learning Local Descriptors with a CDF-Based
        Dynamic Soft Margin", 2019.
    """

    of_unit_rows = True
    metric = "euclidean"
    takes_any_average = False

    def __init__(self, bins=10, **kwargs):
        super().__init__(**kwargs)
        self.bins = positive_integer("bins", bins, most=MOST_BINS)

    def pair_loss(self, pairs: Pairs):
        return dynamic_soft_margin_loss(
            self.distances(pairs), *pairs.masks, bins=self.bins
        )
