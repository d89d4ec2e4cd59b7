"""A miner of triplets by the difference of their distances."""

import keras
from keras import ops

from keras_dml.checks import finite_number, one_of
from keras_dml.miners.base import TripletMiner, of_positive
from keras_dml.ops.distances import metric_name
from keras_dml.ops.pairs import Pairs, pair_distances

KINDS = ("all", "hard", "semi_hard", "easy")


def margin_triplets(distance, margin=0.2, kind="all"):
    """Returns a function that chooses negatives for a positive.

    Args:
        distance: Float tensor `(rows, columns)`.
        margin: Float. Defaults to `0.2`.
        kind: String, see `TripletMargin`. Defaults to `"all"`.

    Returns:
        Function of a boolean tensor that is true at the positive of each row.
        It returns where a negative would form a triplet.

    Example:

    >>> chooses = margin_triplets(np.array([[0.0, 0.5, 0.6, 0.8]]))
    >>> chosen = chooses(np.array([[False, True, False, False]]))
    >>> ops.convert_to_numpy(chosen)
    array([[ True,  True,  True, False]])
    """

    one_of("kind", kind, KINDS)

    def chooses(is_positive):
        farther = distance - of_positive(distance, is_positive)
        if kind == "easy":
            return farther > margin
        if kind == "hard":
            return farther <= min(margin, 0.0)
        chosen = farther <= margin
        if kind == "semi_hard":
            chosen = ops.logical_and(chosen, farther > 0)
        return chosen

    return chooses


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class TripletMargin(TripletMiner):
    """Chooses triplets whose negative is not farther by more than a margin.

    With `x = d_an - d_ap`:

    - `"all"`: `x <= m`.
    - `"hard"`: `x <= min(m, 0)`, the negative is nearer than the positive.
    - `"semi_hard"`: `0 < x <= m`, the mining `"all_semi_hard"` of the loss
      `Triplet`.
    - `"easy"`: `x > m`.

    Args:
        margin: Float, `m`. Defaults to `0.2`.
        kind: String. Defaults to `"all"`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"euclidean"`.

    Raises:
        ValueError: If `margin` is not finite or a name is unknown.

    Example:

    >>> miner = TripletMargin(kind="semi_hard")
    >>> loss = keras_dml.losses.Triplet(mining="all", miner=miner)

    Reference:
        Schroff, Kalenichenko and Philbin, "FaceNet", 2015, section 3.2.
    """

    def __init__(self, margin=0.2, kind="all", distance="euclidean"):
        self.margin = finite_number("margin", margin)
        self.kind = one_of("kind", kind, KINDS)
        self.distance = metric_name("distance", distance)

    def chooser(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        return margin_triplets(distance, self.margin, self.kind)
