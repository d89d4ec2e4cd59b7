"""Proxy-Anchor: each proxy is an anchor for all rows of a batch."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import finite_number, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.reductions import log_one_plus_sum_exp, over_replicas
from keras_dml.ops.rows import places


def proxy_anchor_loss(labels, similarities, scale=32.0, margin=0.1):
    """Pulls the rows of a class to its proxy and pushes all others from it.

    `L = attraction + repulsion`, the two sums of `ProxyAnchor`. Both sum soft
    maxima over the batch of all replicas, so the loss has one value for a
    batch, not one for each row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`, cosines of rows and
            proxies.
        scale: Float, `alpha`. Defaults to `32.0`.
        margin: Float, `delta`. Defaults to `0.1`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, the same value in
        every entry.

    Example:

    >>> similarities = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> float(proxy_anchor_loss(np.array([0, 1]), similarities)[0])
    3.2399533331627413
    """
    similarities = ops.convert_to_tensor(similarities)
    classes = similarities.shape[1]
    result = _soft_maxima_and_own(labels, scale, margin)(similarities)
    to_own = result[classes:]
    attraction = attraction_to_proxies(labels, scale * (margin - to_own))
    repulsion = ops.mean(result[:classes])
    return ops.broadcast_to(attraction + repulsion, ops.shape(to_own))


def attraction_to_proxies(labels, exponents, weights=None):
    """Computes `1 / n sum_{c in batch} log(1 + sum_{i: y_i = c} exp(z_i))`.

    `n` is the number of classes in the batch of all replicas; with `weights`
    it is the sum over those classes of the mean weight of their rows.

    Args:
        labels: Integer tensor `(batch,)`.
        exponents: Float tensor `(batch,)`, `z` of each row and the proxy of
            its class.
        weights: Float tensor `(batch,)`. Defaults to `None`, all `1`.

    Returns:
        Scalar tensor.
    """
    labels = distribute.all_gather(labels)
    exponents = distribute.all_gather(exponents)
    same = ops.equal(labels[:, None], labels[None, :])
    # Each class appears once for each of its rows.
    share = 1.0 / ops.sum(ops.cast(same, exponents.dtype), axis=1)
    by_row = log_one_plus_sum_exp(
        ops.broadcast_to(exponents[None, :], ops.shape(same)), same, axis=1
    )
    if weights is None:
        return ops.sum(by_row * share) / ops.sum(share)
    weights = distribute.all_gather(weights)
    return ops.sum(by_row * share) / ops.sum(weights * share)


def column_soft_maxima(exponents):
    """Computes `log(1 + sum_i exp(z_ic))` over the rows of all replicas.

    Args:
        exponents: Float tensor `(rows, columns)`; `-inf` adds zero to a sum.

    Returns:
        Tensor `(columns,)`, and its gradient: a function that takes the
        upstream gradient `(columns,)` and a factor to multiply it by, and
        returns a tensor `(rows, columns)`.
    """
    largest = over_replicas(ops.max, ops.max(exponents, axis=0))
    largest = ops.maximum(largest, 0.0)
    exponentials = ops.exp(exponents - largest)
    total = over_replicas(ops.sum, ops.sum(exponentials, axis=0))

    def gradient(upstream, factor=1.0):
        upstream = factor * over_replicas(ops.sum, upstream)
        return exponentials * (upstream / (ops.exp(-largest) + total))

    return largest + ops.log1p(ops.expm1(-largest) + total), gradient


def _soft_maxima_and_own(labels, scale, margin):
    """Returns a function of the similarities for the two parts of the loss.

    It computes `log(1 + sum_{i: y_i != c} exp(a (s_ic + d)))` of every class
    `c`, over the rows of all replicas, then the similarity of every row to
    the proxy of its class. One function computes both, so that their gradient
    takes one pass over the similarities.
    """
    labels = ops.cast(labels, "int32")
    true = places(labels)

    @custom_gradient
    def both(similarities):
        classes = similarities.shape[1]
        own = ops.take_along_axis(similarities, labels[:, None], axis=1)[:, 0]
        exponents = ops.scatter_update(
            scale * (similarities + margin),
            true,
            ops.full_like(own, float("-inf")),
        )
        soft_maxima, gradient_of = column_soft_maxima(exponents)

        def gradient(upstream):
            by_class = gradient_of(upstream[:classes], scale)
            return ops.scatter_update(by_class, true, upstream[classes:])

        return ops.concatenate([soft_maxima, own]), gradient

    return both


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyAnchor(LogitsLoss):
    """Proxy-Anchor: each proxy is an anchor for all rows of the batch.

    `L = 1/|C+| sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-a (s_ic - d)))`
    `+ 1/|C| sum_c log(1 + sum_{i: y_i != c} exp(a (s_ic + d)))`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, the scale
    `a`, the margin `d`, and the classes `C+` that are in the batch. It takes
    the output of `Proxies(metric="cosine")` without `ScaledLogits`.

    The loss compares all rows of the batch, under `tf.distribute` those of
    all replicas. So every row has the same value, and sample weights scale
    the whole loss instead of single rows.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `scale` is not positive or `margin` is not finite.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=ProxyAnchor())
    ```

    Reference:
        Kim et al., "Proxy Anchor Loss for Deep Metric Learning", 2020,
        equation 4.
    """

    takes = "similarities"

    def __init__(self, scale=32.0, margin=0.1, **kwargs):
        super().__init__(**kwargs)
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)

    def logits_loss(self, labels, logits):
        return proxy_anchor_loss(labels, logits, self.scale, self.margin)
