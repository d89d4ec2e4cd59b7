"""A miner of the nearest negative that is farther than the positive."""

import keras
from keras import ops

from keras_dml.checks import boolean
from keras_dml.miners.base import TripletMiner, of_positive
from keras_dml.ops.distances import metric_name
from keras_dml.ops.pairs import Pairs, pair_distances
from keras_dml.ops.reductions import masked_max, masked_min


def semi_hard_triplets(distance, negative, or_farthest=False):
    """Returns a function that chooses one negative for a positive.

    Args:
        distance: Float tensor `(rows, columns)`.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        or_farthest: Boolean, see `SemiHard`. Defaults to `False`.

    Returns:
        Function of a boolean tensor that is true at the positive of each row.
        It returns the weights of the triplets with each negative, which sum to
        1: negatives at the same distance share one triplet.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.2, 0.8]])
    >>> negative = np.array([[False, False, True, True]])
    >>> chooses = semi_hard_triplets(distance, negative)
    >>> chosen = chooses(np.array([[False, True, False, False]]))
    >>> ops.convert_to_numpy(chosen)
    array([[0., 0., 0., 1.]])
    """
    farthest = masked_max(distance, negative)[:, None]

    def chooses(is_positive):
        own = of_positive(distance, is_positive)
        beyond = ops.logical_and(negative, distance > own)
        wanted = masked_min(distance, beyond)[:, None]
        if or_farthest:
            none = ops.logical_not(ops.any(beyond, axis=1, keepdims=True))
            wanted = ops.where(none, farthest, wanted)
        chosen = ops.logical_and(negative, ops.equal(distance, wanted))
        chosen = ops.cast(chosen, distance.dtype)
        ties = ops.sum(chosen, axis=1, keepdims=True)
        return chosen / ops.maximum(ties, 1.0)

    return chooses


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class SemiHard(TripletMiner):
    """Chooses for each positive the nearest negative that is farther.

    The minings `"semi_hard"` and `"facenet"` of the loss `Triplet` are this
    miner.

    Args:
        or_farthest: Boolean, whether a positive without a farther negative
            takes the farthest negative of its row. Defaults to `False`, no
            triplet.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"cosine"`.

    Raises:
        ValueError: If `distance` is unknown.

    Example:

    >>> loss = keras_dml.losses.Contrastive(miner=SemiHard())

    Reference:
        Schroff, Kalenichenko and Philbin, "FaceNet", 2015, section 3.2.
    """

    def __init__(self, or_farthest=False, distance="cosine"):
        self.or_farthest = boolean("or_farthest", or_farthest)
        self.distance = metric_name("distance", distance)

    def chooser(self, pairs: Pairs):
        return semi_hard_triplets(
            pair_distances(pairs, self.distance),
            pairs.negative,
            self.or_farthest,
        )
