"""ProxyAnchor with a weight for each pair of a row and a proxy."""

import keras
from keras import ops

from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.proxy_anchor import (
    attraction_to_proxies,
    column_soft_maxima,
)
from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.rows import places
from keras_dml.ops.sample_aware import split_exponents


def proxy_isa_loss(labels, exponents):
    """Computes `proxy_anchor_loss` with the weights inside the exponents.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        exponents: Float tensor `(batch, 1, classes + 3)`, the output of
            `SampleAwareProxies`.

    Returns:
        Tensor `(batch,)` of the dtype of `exponents`, the same value in every
        entry.

    Raises:
        ValueError: If `exponents` has another shape.

    Example:

    >>> exponents = np.array([[[-np.inf, 3.0, -20.0, 1.0, 2.0]]])
    >>> float(proxy_isa_loss(np.array([0]), exponents)[0])  # softplus(3) / 2
    1.5242936778480247
    """
    parts = split_exponents(ops.convert_to_tensor(exponents), "proxy_isa")
    by_class, own = _soft_maxima_and_own(parts.columns, parts.num_classes)
    attraction = attraction_to_proxies(labels, own, parts.own_weights)
    repulsion = ops.sum(by_class) / ops.maximum(parts.weight_of_others, 1e-12)
    return ops.broadcast_to(attraction + repulsion, ops.shape(labels))


def _soft_maxima_and_own(columns, num_classes):
    """Returns `log(1 + sum_i exp(z_ic))` by class, and the own exponents.

    The own exponent of a row is that of the proxy of its class. The sum is
    over the rows of all replicas. One function computes both, so that their
    gradient takes one pass over the matrix.
    """
    own = places(ops.full_like(columns[:, 0], num_classes, dtype="int32"))
    width = columns.shape[1]

    @custom_gradient
    def both(columns):
        soft_maxima, gradient_of = column_soft_maxima(columns)

        def gradient(upstream):
            by_column = gradient_of(upstream[:width])
            return ops.scatter_update(by_column, own, upstream[width:])

        return ops.concatenate([soft_maxima, columns[:, num_classes]]), gradient

    result = both(columns)
    return result[:num_classes], result[width:]


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyISA(LogitsLoss):
    """Proxy-ISA: ProxyAnchor that weights each pair of a row and a proxy.

    `L = 1/W+ sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-w_ic a (s_ic - d)))`
    `+ 1/W- sum_c log(1 + sum_{i: y_i != c} exp(w_ic a (s_ic + d)))`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, the weight
    `w_ic` of the pair, the scale `a` and the margin `d`. `W+` sums, over the
    classes `C+` in the batch, the mean weight of the rows of a class; `W-`
    sums, over all classes, the mean weight of the rows of other classes, as the
    authors' code does: the paper names the rows of the class, which have no
    negative weight. With all weights 1 the loss equals `ProxyAnchor`, and as
    there every row has the value of the batch.

    The loss has no state and no argument: it takes the output of
    `SampleAwareProxies`, which computes the weighted exponents.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `y_pred` is not the output of `SampleAwareProxies`.

    Example:

    ```python
    head = SampleAwareProxies(num_classes=98, name="proxies")
    model = keras.Model([images, labels], head([embedding, labels]))
    model.compile("adam", loss=ProxyISA())
    model.fit([x, y], y, epochs=20, callbacks=[CountEpochs()])
    ```

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, equation 13.
    """

    takes = "weighted_similarities"
    takes_centers = True
    column_per_class = False

    def logits_loss(self, labels, logits):
        return proxy_isa_loss(labels, logits)
