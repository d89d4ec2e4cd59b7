"""Negatives drawn so that all distances are equally likely."""

from keras import ops

from keras_dml.ops.pairs import masked_max

# At a distance of two the weight is infinite.
LARGEST = 1.99


def distance_weighted_negatives(
    distance,
    positive,
    negative,
    dim,
    step,
    first_row=0,
    nearest=0.5,
    farthest=1.4,
):
    """Draws for every row as many negatives as it has positives.

    The weight of a negative at the distance `d` is the inverse of the density
    of distances on the unit sphere: `log w = (2 - D) log d`
    `- (D - 3) / 2 log(1 - d**2 / 4)` with the dimension `D`. Distances below
    `nearest` count as `nearest`, and negatives beyond `farthest` are left out.
    A row whose negatives are all beyond draws evenly from all of them. No
    negative is drawn twice.

    The draw depends on nothing but the distances, the step and the places of
    the pairs in the global batch: not on the number of replicas, and a resumed
    training draws what it would have drawn.

    Args:
        distance: Float tensor `(rows, columns)`, Euclidean distances of unit
            vectors.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        dim: Integer, the dimension of the vectors.
        step: Integer scalar tensor, the number of the training step.
        first_row: Integer, the place of the first row in the global batch.
            Defaults to `0`.
        nearest: Float. Defaults to `0.5`.
        farthest: Float. Defaults to `1.4`.

    Returns:
        Boolean tensor `(rows, columns)`, the negatives that were drawn.

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        equation 3.
    """
    distance = ops.stop_gradient(distance)
    clipped = ops.clip(distance, nearest, LARGEST)
    weights = (2.0 - dim) * ops.log(clipped) - 0.5 * (dim - 3.0) * ops.log(
        1.0 - 0.25 * ops.square(clipped)
    )
    near = ops.logical_and(negative, distance < farthest)
    any_near = ops.any(near, axis=1, keepdims=True)
    allowed = ops.where(any_near, near, negative)
    weights = ops.where(any_near, weights, ops.zeros_like(weights))
    # The k largest of log-weight plus Gumbel noise are k draws without return.
    # Their range is hundreds: subtracting the largest keeps the digits.
    weights = (
        weights
        - ops.where(
            ops.any(allowed, axis=1), masked_max(weights, allowed), 0.0
        )[:, None]
    )
    noise = _uniform(ops.shape(distance), step, first_row, distance.dtype)
    scores = weights - ops.log(-ops.log(noise))
    scores = ops.where(allowed, scores, ops.cast(float("-inf"), scores.dtype))
    order = ops.argsort(-scores, axis=1)
    rank = ops.argsort(order, axis=1)
    number = ops.sum(ops.cast(positive, rank.dtype), axis=1, keepdims=True)
    return ops.logical_and(allowed, rank < number)


def _uniform(shape, step, first_row, dtype):
    """Numbers in (0, 1) from a hash of step, row and column."""
    rows = ops.cast(ops.arange(shape[0]) + first_row, "int32")
    columns = ops.cast(ops.arange(shape[1]), "int32")
    by_row = _hash(rows + _hash(ops.cast(step, "int32")))
    bits = _hash(by_row[:, None] + columns[None, :])
    # 23 bits are what float32 holds exactly.
    bits = ops.bitwise_and(bits, _int32(2**23 - 1))
    return (ops.cast(bits, dtype) + 0.5) / 2.0**23


def _hash(x):
    """Mixes the bits of int32 numbers; the constants are of lowbias32."""
    x = ops.bitwise_xor(x, _shift(x, 16)) * _int32(0x7FEB352D)
    x = ops.bitwise_xor(x, _shift(x, 15)) * _int32(0x846CA68B - 2**32)
    return ops.bitwise_xor(x, _shift(x, 16))


def _shift(x, bits):
    """To the right, filling with zeros, which a signed shift does not."""
    shifted = ops.bitwise_right_shift(x, _int32(bits))
    return ops.bitwise_and(shifted, _int32(2 ** (32 - bits) - 1))


def _int32(value):
    return ops.convert_to_tensor(value, "int32")
