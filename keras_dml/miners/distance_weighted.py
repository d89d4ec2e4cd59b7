"""A miner that draws negatives at all distances."""

import keras

from keras_dml.checks import in_interval, positive_number
from keras_dml.miners.base import Miner
from keras_dml.ops.draws import LARGEST, distance_weighted_negatives
from keras_dml.ops.pairs import Pairs, pair_distances


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class DistanceWeighted(Miner):
    """Draws one negative for each positive of a row, near or far alike.

    `p(d) ~ 1 / q(max(d, nearest))`, with the density `q` of the distances of
    points on the unit sphere: without the weights nearly all negatives would
    be at a distance of `sqrt(2)`. All positives stay. The loss `Margin` draws
    with this miner.

    The draw is a function of the distances, of the places in the batch and of
    the step. Wrap the loss in `keras_dml.losses.AtStep`, which gives the step:
    without it the noise of the draw is the same in every batch.

    Args:
        nearest: Float, the distance below which all negatives are equally
            likely, above 0 and at most 1.99. Defaults to `0.5`.
        farthest: Positive float, the distance from which on negatives are not
            drawn. Defaults to `1.4`.

    Raises:
        ValueError: If a number is out of range.

    Example:

    ```python
    loss = keras_dml.losses.Contrastive(miner=DistanceWeighted())
    step = keras_dml.layers.TrainingStep(name="step")
    model = keras.Model(image, step(embedding))
    model.compile("adam", loss=keras_dml.losses.AtStep(loss))
    ```

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        equation 3.
    """

    draws = True
    of_unit_rows = True

    def __init__(self, nearest=0.5, farthest=1.4):
        advice = "Rows of length 1 are at most 2 apart."
        self.nearest = in_interval(
            "nearest", nearest, 0, LARGEST, "right", advice
        )
        self.farthest = positive_number("farthest", farthest)

    def mine(self, pairs: Pairs):
        negative = distance_weighted_negatives(
            pair_distances(pairs), pairs, self.nearest, self.farthest
        )
        return pairs.positive, negative
