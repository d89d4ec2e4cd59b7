"""How much a row can teach a proxy: the functions of Proxy-ISA."""

import math

from keras import ops

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
