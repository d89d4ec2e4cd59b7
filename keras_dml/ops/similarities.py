"""Unit vectors, and similarities of vectors with each other or proxies."""

import keras
from keras import ops

from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.reductions import column_sums, log_one_plus_sum_exp, row_sums

METRICS = ("cosine", "dot", "neg_squared_euclidean")
# The least squared length that a vector is divided by.
LEAST = 1e-12
BLOCKS = 8
# The number of proxy-proxy similarities held in memory at a time, 64 MB.
BLOCK_ENTRIES = 2**24


def unit_rows(x):
    """Divides vectors by their length: `x / sqrt(max(sum(x**2), 1e-12))`.

    The gradient of `keras.ops.normalize` at a zero vector is NaN. Here the
    bound is inside the root: a zero vector stays zero and its gradient is
    finite. Half precision is widened to float32 for the computation, in which
    the sum of squares does not overflow for entries up to `1e18`.

    Args:
        x: Float tensor, vectors along the last axis.

    Returns:
        Tensor of the shape and dtype of `x`.

    Example:

    >>> ops.convert_to_numpy(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    x = ops.convert_to_tensor(x)
    wide = _widened(x)
    squared = ops.sum(ops.square(wide), axis=-1, keepdims=True)
    return ops.cast(wide * ops.rsqrt(ops.maximum(squared, LEAST)), x.dtype)


def row_lengths(x):
    """Returns `sqrt(max(sum(x**2), 1e-12))` of each row, see `unit_rows`.

    Args:
        x: Float tensor `(rows, dim)`.

    Example:

    >>> ops.convert_to_numpy(row_lengths(np.array([[3.0, 4.0]])))
    array([5.])
    """
    squared = ops.sum(ops.square(ops.convert_to_tensor(x)), axis=1)
    return ops.sqrt(ops.maximum(squared, LEAST))


def products_with_unit_rows(x, y, scale: float = 1.0):
    """Computes `scale * x . u(y)` of all rows `x` and `y`, `u = unit_rows`.

    It equals `scale * ops.matmul(x, ops.transpose(unit_rows(y)))`, but suits a
    large `y`, such as the proxies of thousands of classes: it scales the
    products and never stores `u(y)` or its gradient, each as large as `y`.

    Args:
        x: Float tensor `(rows, dim)`.
        y: Float tensor `(columns, dim)`.
        scale: Float. Defaults to `1.0`.

    Returns:
        Tensor `(rows, columns)` of the dtype of `x`.

    Example:

    >>> x, y = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 0.0]])
    >>> ops.convert_to_numpy(products_with_unit_rows(x, y))
    array([[2.2, 0. ]])
    """
    x, y = ops.convert_to_tensor(x), ops.convert_to_tensor(y)
    products = _scaled_products(scale)
    return ops.cast(products(_widened(x), _widened(y)), x.dtype)


def _scaled_products(scale):
    @custom_gradient
    def products(x, y):
        squared = _squared_lengths(y)
        inverse = ops.rsqrt(ops.maximum(squared, LEAST))
        # XLA on a processor takes four times as long for `x y^T` with a large
        # `y`. Scaling before the transposition keeps XLA from undoing it.
        factor = scale * inverse
        result = ops.transpose(
            ops.matmul(y, ops.transpose(x)) * factor[:, None]
        )

        def gradient(upstream):
            along = column_sums(upstream * result) * inverse
            along = ops.where(squared > LEAST, along * inverse, 0.0)
            scaled = upstream * factor
            return (
                ops.matmul(scaled, y),
                ops.matmul(ops.transpose(scaled), x) - y * along[:, None],
            )

        return result, gradient

    return products


def _squared_lengths(y):
    """Returns `|y|**2` by row; the squares of a block stay in the cache."""
    rows = y.shape[0]
    size = max(1, -(-rows // BLOCKS))
    return ops.concatenate(
        [
            row_sums(ops.square(y[start : start + size]))
            for start in range(0, rows, size)
        ]
    )


def _widened(x):
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))


def proxy_similarities(embeddings, proxies, metric="cosine", unit_proxies=True):
    """Computes the similarity of every embedding `x` and every proxy `p`.

    With `u(v) = v / |v|` it is `u(x) . u(p)` for `"cosine"`, `x . u(p)` for
    `"dot"`, and `min(2 u(x) . u(p) - 2, 0)` for `"neg_squared_euclidean"`.

    Args:
        embeddings: Float tensor `(batch, dim)`.
        proxies: Float tensor `(classes, dim)` or `(classes, centers, dim)`.
        metric: One of `METRICS`. Defaults to `"cosine"`.
        unit_proxies: Boolean; `False` makes `"dot"` the plain product
            `x . p`. Defaults to `True`.

    Returns:
        Tensor `(batch, classes)` or `(batch, classes, centers)` of the dtype
        of `embeddings`.

    Example:

    >>> proxies = np.array([[3.0, 4.0]])
    >>> ops.convert_to_numpy(proxy_similarities(np.eye(2), proxies))
    array([[0.6],
           [0.8]])
    """
    proxies = ops.convert_to_tensor(proxies)
    if len(proxies.shape) == 3:
        classes, centers, dim = ops.shape(proxies)
        similarity = proxy_similarities(
            embeddings, ops.reshape(proxies, (-1, dim)), metric, unit_proxies
        )
        return ops.reshape(similarity, (-1, classes, centers))
    if metric != "dot":
        embeddings = unit_rows(embeddings)
    if not unit_proxies:
        return ops.matmul(embeddings, ops.transpose(proxies))
    if metric == "neg_squared_euclidean":
        twice = products_with_unit_rows(embeddings, proxies, scale=2.0)
        return _without_rounding_above_zero(twice - 2.0)
    return products_with_unit_rows(embeddings, proxies)


@custom_gradient
def _without_rounding_above_zero(x):
    return ops.minimum(x, 0.0), lambda upstream: upstream


def mutual_repulsion(vectors, scale, margin):
    """Computes how much vectors repel each other.

    `1/C sum_c log(1 + sum_{k != c} exp(scale (v_c . v_k + margin)))`.

    It computes the products in blocks of rows, and again in the backward
    pass, so that memory grows with the number of vectors and not with its
    square. Time grows with the square.

    Args:
        vectors: Float tensor `(C, dim)` with a static number of rows.
        scale: Float.
        margin: Float.

    Returns:
        Scalar tensor of the dtype of `vectors`.

    Example:

    >>> float(mutual_repulsion(np.eye(2), scale=1.0, margin=0.0))  # log(2)
    0.6931471805599453
    """
    vectors = ops.convert_to_tensor(vectors)
    count = vectors.shape[0]
    size = max(1, BLOCK_ENTRIES // count)

    def sum_of_rows(rows, vectors, own):
        products = ops.matmul(rows, ops.transpose(vectors))
        others = ops.not_equal(own[:, None], ops.arange(count)[None, :])
        return ops.sum(
            log_one_plus_sum_exp(scale * (products + margin), others, axis=1)
        )

    if size < count:
        sum_of_rows = keras.remat(sum_of_rows)
    total = sum(
        sum_of_rows(
            vectors[start : start + size],
            vectors,
            ops.arange(start, min(start + size, count)),
        )
        for start in range(0, count, size)
    )
    return total / count
