"""Draws pairs of a batch, others at each step of the training."""

import contextlib
import threading

from keras import ops

from keras_dml.ops.largest import nth_largest
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import masked_max

# At a distance of two the weight is infinite.
LARGEST = 1.99
# Replicas are threads.
_CURRENT = threading.local()


@contextlib.contextmanager
def at_step(step):
    """Lets draws depend on the training step, in this thread.

    Args:
        step: Integer scalar tensor.

    Example:

    >>> with at_step(3):
    ...     training_step()
    3
    """
    before = training_step()
    _CURRENT.step = step
    try:
        yield
    finally:
        _CURRENT.step = before


def training_step():
    """Returns the step that `at_step` gave; 0 outside of it."""
    return getattr(_CURRENT, "step", 0)


def distance_weighted_negatives(
    distance, pairs: Pairs, nearest=0.5, farthest=1.4
):
    """Draws one negative for each positive of a row.

    The weight of a negative at the distance `d` is the inverse of the density
    of distances on the unit sphere: `log w = (2 - D) log d`
    `- (D - 3) / 2 log(1 - d**2 / 4)` with the dimension `D`. Distances below
    `nearest` count as `nearest`, and negatives from `farthest` on are left
    out. A row without closer negatives draws from all its negatives with
    equal probability. A row draws no negative twice.

    The draw depends on the distances, the step and the positions of the pairs
    in the global batch only. So it does not depend on the number of replicas,
    and a resumed training draws the same negatives as an uninterrupted one.

    Args:
        distance: Float tensor `(rows, columns)`, Euclidean distances of unit
            vectors.
        pairs: The `Pairs`.
        nearest: Float. Defaults to `0.5`.
        farthest: Float. Defaults to `1.4`.

    Returns:
        Boolean tensor `(rows, columns)`, the drawn negatives.

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        equation 3.
    """
    dim = pairs.embeddings.shape[1]
    distance = ops.stop_gradient(distance)
    clipped = ops.clip(distance, nearest, LARGEST)
    weights = (2.0 - dim) * ops.log(clipped) - 0.5 * (dim - 3.0) * ops.log(
        1.0 - 0.25 * ops.square(clipped)
    )
    near = ops.logical_and(pairs.negative, distance < farthest)
    any_near = ops.any(near, axis=1, keepdims=True)
    allowed = ops.where(any_near, near, pairs.negative)
    weights = ops.where(any_near, weights, ops.zeros_like(weights))
    # The k largest sums of log-weight and Gumbel noise are k draws without
    # replacement. The log-weights span hundreds: subtract the largest, or the
    # noise would lose digits in the sum.
    any_allowed = ops.any(allowed, axis=1)
    largest = ops.where(any_allowed, masked_max(weights, allowed), 0.0)
    weights = weights - largest[:, None]
    noise = pair_noise(pairs, distance)
    scores = weights - ops.log(-ops.log(noise))
    scores = ops.where(allowed, scores, ops.cast(float("-inf"), scores.dtype))
    number = ops.sum(ops.cast(pairs.positive, "int32"), axis=1)
    last = nth_largest(scores, number)
    return ops.logical_and(allowed, scores >= last[:, None])


def pair_noise(pairs: Pairs, like):
    """Returns numbers in (0, 1) from a hash of step, row and column.

    Args:
        pairs: The `Pairs`; their columns are counted from the first.
        like: Float tensor `(rows, columns)`, for the shape and the dtype.
    """
    rows = ops.cast(ops.arange(ops.shape(like)[0]) + pairs.first_row, "int32")
    columns = ops.cast(ops.arange(ops.shape(like)[1]), "int32")
    by_row = _hash(rows + _hash(ops.cast(pairs.step, "int32")))
    bits = _hash(by_row[:, None] + columns[None, :])
    # float32 holds 23 bits plus a half exactly.
    bits = ops.bitwise_and(bits, _int32(2**23 - 1))
    return (ops.cast(bits, like.dtype) + 0.5) / 2.0**23


def _hash(x):
    """Mixes the bits of int32 numbers; the constants are of lowbias32."""
    x = ops.bitwise_xor(x, _shift(x, 16)) * _int32(0x7FEB352D)
    x = ops.bitwise_xor(x, _shift(x, 15)) * _int32(0x846CA68B - 2**32)
    return ops.bitwise_xor(x, _shift(x, 16))


def _shift(x, bits):
    """Shifts to the right and fills with zeros, unlike a signed shift."""
    shifted = ops.bitwise_right_shift(x, _int32(bits))
    return ops.bitwise_and(shifted, _int32(2 ** (32 - bits) - 1))


def _int32(value):
    return ops.convert_to_tensor(value, "int32")
