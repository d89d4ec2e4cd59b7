"""Similarities of embeddings and proxies, by the name of their metric."""

from keras import ops

from keras_dml.ops.custom_gradient import custom_gradient
from keras_dml.ops.unit_rows import products_with_unit_rows, unit_rows

METRICS = ("cosine", "dot", "neg_squared_euclidean")


def similarities(embeddings, proxies, metric="cosine", unit_proxies=True):
    """Similarity of every embedding `x` and every proxy `p`.

    With `u(v) = v / |v|` it is `u(x) . u(p)` for `"cosine"`, `x . u(p)` for
    `"dot"`, and `min(2 u(x) . u(p) - 2, 0)` for `"neg_squared_euclidean"`.

    Args:
        embeddings: Float tensor `(batch, dim)`.
        proxies: Float tensor `(columns, dim)`.
        metric: One of `METRICS`. Defaults to `"cosine"`.
        unit_proxies: Boolean; `False` makes `"dot"` the plain product
            `x . p`. Defaults to `True`.

    Returns:
        Tensor `(batch, columns)` of the dtype of `embeddings`.

    Example:

    >>> ops.convert_to_numpy(similarities(np.eye(2), np.array([[3.0, 4.0]])))
    array([[0.6],
           [0.8]])
    """
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
