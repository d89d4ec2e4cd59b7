"""What compares two rows: similarities and distances, by their names."""

import math
import re

from keras import ops

from keras_dml.checks import one_of
from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.reductions import rounding

# Inner products; they are cosines for rows of length 1.
PRODUCTS = ("cosine", "dot")
NAMED = (*PRODUCTS, "euclidean", "squared_euclidean", "signal_to_noise")
# The features that a step of `lp_distances` compares, besides all pairs.
BLOCK = 4


def metric_name(name: str, value):
    """Returns `value`, if it names a similarity or a distance.

    Args:
        name: The argument, for the error.
        value: What the caller gave: `"cosine"`, `"dot"`, `"euclidean"`,
            `"squared_euclidean"`, `"signal_to_noise"`, or `"l"` and a number
            of at least 1, such as `"l1"` or `"l2.5"`.

    Raises:
        UsageError: If it does not.

    Example:

    >>> metric_name("similarity", "l1")
    'l1'
    """
    return value if order_of(value) else one_of(name, value, (*NAMED, "l1"))


def order_of(metric) -> float | None:
    """Returns the `p` of an Lp distance, `None` for any other metric.

    Example:

    >>> order_of("l2.5"), order_of("euclidean"), order_of("cosine")
    (2.5, 2.0, None)
    """
    if metric == "euclidean":
        return 2.0
    found = re.fullmatch(r"l(\d{1,3}(?:\.\d{1,6})?)", str(metric))
    order = float(found[1]) if found else 0.0
    return order if order >= 1 else None


def is_distance(metric: str) -> bool:
    """Returns whether smaller values of a metric are closer."""
    return metric not in PRODUCTS


def lp_distances(x, y, p: float):
    """Computes `(sum_k |x_ik - y_jk|^p)^(1/p)` of all rows `x` and `y`.

    It compares a few features of all pairs at a time: memory is that of a few
    matrices `(rows, columns)`, and time grows with `rows * columns * dim`.

    Args:
        x: Float tensor `(rows, dim)`.
        y: Float tensor `(columns, dim)`.
        p: Float, at least 1.

    Returns:
        Tensor `(rows, columns)`. The gradient of the distance of equal rows is
        zero.

    Example:

    >>> x, y = np.array([[0.0, 0.0]]), np.array([[3.0, -4.0]])
    >>> float(lp_distances(x, y, 1.0)[0, 0])
    7.0
    """
    return _lp(p)(ops.convert_to_tensor(x), ops.convert_to_tensor(y))


def _lp(p):
    @custom_gradient
    def distances(x, y):
        blocks = _blocks(x), _blocks(y)

        def differences(index):
            x, y = (ops.take(one, index, axis=0) for one in blocks)
            return x[:, :, None] - y[:, None, :]

        def farthest(index, found):
            sizes = ops.abs(differences(index))
            return (ops.maximum(found[0], ops.max(sizes, axis=0)),)

        def add(index, total):
            sizes = ops.divide_no_nan(ops.abs(differences(index)), largest)
            return (total[0] + ops.sum(_power(sizes, p), axis=0),)

        number = blocks[0].shape[0]
        zeros = ops.zeros_like(ops.matmul(x, ops.transpose(y)))
        # Powers of shares neither overflow nor vanish.
        (largest,) = ops.fori_loop(0, number, farthest, (zeros,))
        (total,) = ops.fori_loop(0, number, add, (zeros,))
        result = largest * total ** (1.0 / p)

        def gradient(upstream):
            def slopes(index):
                apart = differences(index)
                share = ops.divide_no_nan(ops.abs(apart), result)
                slope = upstream * ops.sign(apart) * _power(share, p - 1.0)
                return ops.sum(slope, axis=2), -ops.sum(slope, axis=1)

            found = ops.map(slopes, ops.arange(number))
            return tuple(
                ops.transpose(ops.reshape(one, (-1, ops.shape(one)[2])))
                for one in found
            )

        return result, gradient

    return distances


def _blocks(x):
    """Returns the features in groups: `(groups, features, rows)`."""
    size = math.gcd(x.shape[1], BLOCK)
    return ops.reshape(ops.transpose(x), (x.shape[1] // size, size, -1))


def _power(x, exponent):
    """Returns a power; products are faster than powers."""
    if exponent == 0.0:
        return ops.ones_like(x)
    if exponent in (1.0, 2.0, 3.0):
        return math.prod([x] * int(exponent))
    return ops.power(x, exponent)


def noise_ratios(x, y):
    """Returns `var(x_i - y_j) / var(x_i)`, over the entries of the vectors.

    Args:
        x: Float tensor `(rows, dim)`.
        y: Float tensor `(columns, dim)`.

    Returns:
        Tensor `(rows, columns)`; zero where `x_i` has equal entries only.

    Example:

    >>> x, y = np.array([[1.0, -1.0]]), np.array([[1.0, 1.0]])
    >>> ops.convert_to_numpy(noise_ratios(x, y))
    array([[1.]])
    """
    x = x - ops.mean(x, axis=1, keepdims=True)
    y = y - ops.mean(y, axis=1, keepdims=True)
    own = ops.sum(ops.square(x), axis=1)[:, None]
    lengths = own + ops.sum(ops.square(y), axis=1)[None, :]
    noise = lengths - 2.0 * ops.matmul(x, ops.transpose(y))
    return ops.divide_no_nan(without_rounding(noise, lengths), own)


def without_rounding(difference, of):
    """Returns zero where a difference is but the rounding error of its terms.

    Args:
        difference: Float tensor.
        of: Float tensor, the size of the terms.
    """
    # A root of the noise, or a ratio to it, is not small.
    noise = rounding(difference) * of
    return ops.where(difference > noise, difference, 0.0)
