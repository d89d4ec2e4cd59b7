"""The maths of sample-aware proxies: weights, and exponents with weights."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.rows import entries

DECAYS = ("sigma", "lower_bound", "reciprocal")


def effective_number(count, volume: float):
    """`E = (1 - b**n) / (1 - b)` with `b = (V - 1) / V`, from 0 to `V`.

    Args:
        count: Float tensor, the number `n` of rows seen of a class.
        volume: Float above 1, `V`.

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, equation 8.
    """
    return -volume * ops.expm1(count * math.log1p(-1.0 / volume))


def lower_bound(effective):
    """`v = 1 / (1 + log(1 + E))`: equation 14."""
    return 1.0 / (1.0 + ops.log1p(effective))


def sigma(effective, volume: float, tau: float):
    """The decay from 1 to `v` as `E` comes near `V`: equation 17.

    `1 + (1 + exp(-t)) (v - 1) sigmoid(E - V + t)`, which is the same and
    cannot overflow.
    """
    opened = ops.sigmoid(effective - volume + tau)
    return 1.0 + (1.0 + math.exp(-tau)) * (lower_bound(effective) - 1) * opened


def search_length(learned, effective, sensitivity: float, margin: float):
    """`eta = (1 + k (1 - S)) v + l`, `S` the learned similarity: equation 15.

    Rows whose similarity to their proxy lies less than `eta` below `S` are
    the informative ones; those further below are outliers.
    """
    hardness = 1.0 + sensitivity * (1.0 - learned)
    return hardness * lower_bound(effective) + margin


def positive_weight(similarity, learned, outlier, decay):
    """`1 + decay` from `outlier` to `learned`, else `decay`: equation 16."""
    informative = ops.logical_and(similarity >= outlier, similarity <= learned)
    return decay + ops.cast(informative, decay.dtype)


def negative_weight(similarity, outlier, effective, scale: float = 1.0):
    """`1 / max(1, E)` below `outlier`, else `1`: equation 16, times `scale`."""
    small = scale / ops.maximum(effective, 1.0)
    return ops.where(similarity < outlier, small, ops.full_like(small, scale))


class WeightedExponents(NamedTuple):
    """The parts of the output of `SampleAwareProxies`.

    Attributes:
        columns: Float tensor `(batch, classes + 3)`, all of it. The first
            columns are the exponents of a row and the other proxies, with
            `-inf` in the column of its own one.
        num_classes: Integer.
        own: Float tensor `(batch,)`, the exponent of a row and its own proxy.
        own_weights: Float tensor `(batch,)`, its weight, without gradient.
        weight_of_others: Scalar tensor, the sum over the classes of the mean
            weight of the rows of other classes, without gradient.
    """

    columns: Any
    num_classes: int
    own: Any
    own_weights: Any
    weight_of_others: Any


def join_exponents(
    similarity,
    labels,
    factors,
    own_factors,
    margin,
    own_weights,
    weight_of_others,
):
    """`f (s + d)` for the other proxies of a row, `f (d - s)` for its own.

    The gradient is written out: it needs one pass over the matrix, where that
    of the single operations needs five.

    Args:
        similarity: Float tensor `(batch, classes)`, `s`.
        labels: Int32 tensor `(batch,)`, values from 0 to `classes - 1`.
        factors: Float tensor `(batch, classes)`, `f`: weights times a scale.
            Those of the own proxies are not used.
        own_factors: Float tensor `(batch,)`, `f` of the own proxies.
        margin: Float, `d`.
        own_weights: See `WeightedExponents`.
        weight_of_others: See `WeightedExponents`.

    Returns:
        Tensor `(batch, 1, classes + 3)`, which `split_exponents` takes. The
        axis of one tells it from plain similarities.
    """
    classes = similarity.shape[1]
    factors, own_factors, own_weights, weight_of_others = (
        ops.stop_gradient(x)
        for x in (factors, own_factors, own_weights, weight_of_others)
    )
    rows = ops.arange(ops.shape(labels)[0], dtype="int32")
    own = ops.stack([rows, labels], axis=1)

    @custom_gradient
    def joined(similarity):
        others = ops.scatter_update(
            factors * (similarity + margin),
            own,
            ops.full_like(own_factors, float("-inf")),
        )
        last = ops.stack(
            [
                own_factors * (margin - entries(similarity, labels)),
                own_weights,
                ops.broadcast_to(weight_of_others, ops.shape(own_weights)),
            ],
            axis=1,
        )

        def gradient(upstream):
            return ops.scatter_update(
                factors * upstream[:, :classes],
                own,
                -own_factors * upstream[:, classes],
            )

        return ops.concatenate([others, last], axis=1), gradient

    return ops.expand_dims(joined(similarity), 1)


def split_exponents(output, loss_name: str) -> WeightedExponents:
    """The parts of the output of `SampleAwareProxies`.

    Args:
        output: Tensor `(batch, 1, classes + 3)`.
        loss_name: String, for the error.

    Raises:
        ValueError: If it has another shape.
    """
    if len(output.shape) != 3 or output.shape[1] != 1 or output.shape[2] < 4:
        raise ValueError(
            f"`y_pred` of the loss {loss_name!r} must be the output of "
            "`SampleAwareProxies`, of shape (batch, 1, classes + 3). "
            f"Received: y_pred.shape={tuple(output.shape)}"
        )
    classes = output.shape[2] - 3
    columns = ops.reshape(output, (-1, classes + 3))
    last = ops.stop_gradient(columns)[:, classes + 1 :]
    return WeightedExponents(
        columns, classes, columns[:, classes], last[:, 0], last[0, 1]
    )
