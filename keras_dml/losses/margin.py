"""Margin loss with distance-weighted sampling."""

import keras
from keras import ops

from keras_dml import miners
from keras_dml.checks import finite_number, one_of
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.reductions import batch_mean, count, masked_sum

SAMPLINGS = ("distance_weighted", "all")


def margin_loss(distance, positive, negative, boundary, margin=0.2, nu=0.0):
    """Computes the margin loss of the given pairs, see `Margin`.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes
            to use, such as the drawn ones.
        boundary: Float tensor `(rows,)`, `b` of the class of each row.
        margin: Float. Defaults to `0.2`.
        nu: Float, weight of the sum of the boundaries. Defaults to `0.0`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        non-zero terms of all replicas.

    Example:

    >>> distance = np.array([[0.0, 1.25, 1.25]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> boundary = np.array([1.25])
    >>> float(margin_loss(distance, positive, negative, boundary)[0])
    0.2
    """
    too_far = ops.relu(distance - boundary[:, None] + margin)
    too_near = ops.relu(boundary[:, None] - distance + margin)
    dtype = distance.dtype
    active = count(ops.logical_and(positive, too_far > 0), dtype)
    active += count(ops.logical_and(negative, too_near > 0), dtype)
    totals = masked_sum(too_far, positive) + masked_sum(too_near, negative)
    totals += nu * boundary * count(positive, dtype)
    return batch_mean(totals, active)


@keras.saving.register_keras_serializable(package="keras_dml")
class Margin(PairLoss):
    """Pulls positives within a learned boundary, pushes negatives beyond it.

    `L = sum([d_ap - b + m]_+ + [b - d_an + m]_+ + nu b) / n`

    with Euclidean distances `d` of unit embeddings, the boundary `b` of the
    class of the anchor, and the number `n` of non-zero distance terms; the
    loss is zero if `n` is. For each positive pair the loss draws one negative
    of the anchor with `keras_dml.miners.DistanceWeighted`.

    The boundaries are weights, and the draw depends on the step, so `y_pred`
    is the output of the layer `ClassBoundaries`: the embedding, its boundary
    and the step. The loss normalizes the embedding. It is one number for the
    whole batch of all replicas. So every row has the same value, and sample
    weights scale the whole loss.

    Args:
        margin: Float, `m`. Defaults to `0.2`.
        nu: Float, `nu`; a positive value lowers the boundaries. Defaults to
            `0.0`.
        sampling: `"distance_weighted"`, or `"all"` for all negatives; a
            `miner` replaces it. Defaults to `"distance_weighted"`.
        nearest: Float, the distance below which all negatives are equally
            likely, above 0 and at most 1.99. Defaults to `0.5`.
        farthest: Positive float, the distance from which on negatives are not
            drawn. Defaults to `1.4`.
        **kwargs: `normalize`, `miner`, `similarity`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `sampling` is unknown, a number is out of range, or
            negatives are drawn without `normalize`.

    Example:

    ```python
    boundaries = ClassBoundaries(num_classes=98, name="boundaries")
    model = keras.Model(
        {"image": image, "label": label}, boundaries([embedding, label])
    )
    model.compile("adam", loss=Margin())
    ```

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        equations 3 to 6.
    """

    takes = "embeddings_and_boundaries"
    within_batch = True
    metric = "euclidean"
    takes_any_average = False

    def __init__(
        self,
        margin=0.2,
        nu=0.0,
        sampling="distance_weighted",
        nearest=0.5,
        farthest=1.4,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.margin = finite_number("margin", margin)
        self.nu = finite_number("nu", nu)
        self.sampling = one_of("sampling", sampling, SAMPLINGS)
        drawing = miners.DistanceWeighted(nearest, farthest)
        self.nearest, self.farthest = drawing.nearest, drawing.farthest
        if self.miner is None and sampling == "distance_weighted":
            self._chosen_by = drawing
            self._check_length_of(drawing)

    def call(self, y_true, y_pred):
        if len(y_pred.shape) != 2:
            return super().call(y_true, y_pred)
        step = ops.max(y_pred[:, -1], initial=0)
        pairs = self.batch_pairs(y_true, y_pred[:, :-2])
        pairs = self.mined(pairs._replace(step=step))
        return self.pair_loss(pairs, y_pred[:, -2])

    def pair_loss(self, pairs, boundary):  # type: ignore[override]
        return margin_loss(
            self.distances(pairs),
            pairs.positive,
            pairs.negative,
            boundary,
            self.margin,
            self.nu,
        )
