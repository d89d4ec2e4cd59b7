"""A miner of the hardest pairs of each row."""

import keras

from keras_dml.miners.base import Miner
from keras_dml.miners.batch_easy_hard import easy_hard_pairs
from keras_dml.ops.pairs import Pairs, pair_distances


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class BatchHard(Miner):
    """Chooses for each row its farthest positive and its nearest negative.

    A row without a positive or without a negative has no pairs. Of pairs at
    the same distance all are chosen.

    Example:

    >>> loss = keras_dml.losses.Contrastive(miner=BatchHard())

    Reference:
        Hermans, Beyer and Leibe, "In Defense of the Triplet Loss for Person
        Re-Identification", 2017, equation 5.
    """

    def mine(self, pairs: Pairs):
        distance = pair_distances(pairs)
        return easy_hard_pairs(distance, *pairs.masks, "hard", "hard")
