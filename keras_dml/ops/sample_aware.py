"""The formulas of sample-aware proxies: weights and weighted exponents."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.rows import entries, places

DECAYS = ("sigma", "lower_bound", "reciprocal")
WEIGHTINGS = ("exponent", "summand")


def effective_number(count, volume: float):
    """Computes `E = (1 - b**n) / (1 - b)` with `b = (V - 1) / V`.

    `E` lies between 0 and `V`.

    Args:
        count: Float tensor, the number `n` of rows seen of a class.
        volume: Float above 1, `V`.

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, equation 8.
    """
    return -volume * ops.expm1(count * math.log1p(-1.0 / volume))


def lower_bound(effective):
    """Computes `v = 1 / (1 + log(1 + E))`: equation 14."""
    return 1.0 / (1.0 + ops.log1p(effective))


def sigma(effective, volume: float, tau: float):
    """Computes the decay from 1 to `v` as `E` approaches `V`: equation 17.

    Uses `1 + (1 + exp(-t)) (v - 1) sigmoid(E - V + t)` with `t = tau`, which
    equals equation 17 and cannot overflow.
    """
    opened = ops.sigmoid(effective - volume + tau)
    return 1.0 + (1.0 + math.exp(-tau)) * (lower_bound(effective) - 1) * opened


def search_length(learned, effective, sensitivity: float, margin: float):
    """Computes `eta = (1 + k (1 - S)) v + l`: equation 15.

    `S` is the learned similarity. Rows whose similarity to their proxy lies
    less than `eta` below `S` are informative; those further below are
    outliers.
    """
    hardness = 1.0 + sensitivity * (1.0 - learned)
    return hardness * lower_bound(effective) + margin


def positive_weight(similarity, learned, outlier, decay):
    """Returns `1 + decay` from `outlier` to `learned`, else `decay`.

    Equation 16.
    """
    informative = ops.logical_and(similarity >= outlier, similarity <= learned)
    return decay + ops.cast(informative, decay.dtype)


def negative_weight(similarity, outlier, effective, scale: float = 1.0):
    """Returns `scale / max(1, E)` below `outlier`, else `scale`.

    Equation 16, times `scale`.
    """
    small = scale / ops.maximum(effective, 1.0)
    return ops.where(similarity < outlier, small, ops.full_like(small, scale))


class WeightedExponents(NamedTuple):
    """The parts of the output of `SampleAwareProxies`.

    Attributes:
        columns: Float tensor `(batch, classes + 3)`, the whole output. The
            first columns are the exponents of a row and the proxies of other
            classes, with `-inf` in the column of its own class.
        num_classes: Integer.
        own: Float tensor `(batch,)`, the exponent of a row and its own proxy.
        own_weights: Float tensor `(batch,)`, the weight of a row and its own
            proxy, without gradient.
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
    """Computes `f (s + d)` for other proxies, `f (d - s)` for a row's own.

    The gradient is written out and takes one pass over the matrix; the
    automatic gradient takes five.

    Args:
        similarity: Float tensor `(batch, classes)`, `s`.
        labels: Int32 tensor `(batch,)`, values from 0 to `classes - 1`.
        factors: Float tensor `(batch, classes)`, `f`: weights times a scale.
            Entries for the own proxies are not used.
        own_factors: Float tensor `(batch,)`, `f` for the own proxies.
        margin: Float, `d`.
        own_weights: See `WeightedExponents`.
        weight_of_others: See `WeightedExponents`.

    Returns:
        Tensor `(batch, 1, classes + 3)`, which `split_exponents` takes. The
        axis of size 1 distinguishes it from plain similarities.
    """
    classes = similarity.shape[1]
    factors, own_factors, own_weights, weight_of_others = (
        ops.stop_gradient(x)
        for x in (factors, own_factors, own_weights, weight_of_others)
    )
    own = places(labels)

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


def log_weights(weights, own_weights):
    """Computes what exponents gain when weights stand before exponentials.

    Args:
        weights: Float tensor `(batch, classes)` above 0, of rows and proxies.
        own_weights: Float tensor `(batch,)` above 0, of rows and their own
            proxies.

    Returns:
        Tensor `(batch, 1, classes + 3)` without gradient, to add to the output
        of `join_exponents`.
    """
    last = ops.pad(ops.log(own_weights)[:, None], [[0, 0], [0, 2]])
    shifts = ops.concatenate([ops.log(weights), last], axis=1)
    return ops.stop_gradient(ops.expand_dims(shifts, 1))


def split_exponents(output, loss_name: str) -> WeightedExponents:
    """Splits the output of `SampleAwareProxies` into its parts.

    Args:
        output: Tensor `(batch, 1, classes + 3)`.
        loss_name: String, for the error message.

    Raises:
        ValueError: If `output` has another shape.
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
        columns,
        classes,
        columns[:, classes],
        last[:, 0],
        # The same in every row, of which a replica may have none.
        ops.max(last[:, 1], initial=0),
    )
