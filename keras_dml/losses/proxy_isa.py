"""ProxyAnchor with a weight for every pair of row and proxy."""

import keras
from keras import ops

from keras_dml.losses.checks import (
    finite_number,
    full_precision,
    positive_number,
)
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.proxy_anchor import (
    attraction_to_proxies,
    proxy_anchor_loss,
    repulsion_from_proxies,
)


def proxy_isa_loss(labels, similarities, scale=32.0, margin=0.1):
    """`proxy_anchor_loss` with the weight of a pair inside its exponent.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, 2, classes)`, cosines and weights,
            or `(batch, classes)`, cosines of weight 1.
        scale: Float, `alpha`. Defaults to `32.0`.
        margin: Float, `delta`. Defaults to `0.1`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, the same value in
        every entry.

    Raises:
        ValueError: If the second axis of three is not 2.

    Example:

    >>> cosines, weights = np.eye(2), np.full((2, 2), 0.5)
    >>> similarities = np.stack([cosines, weights], axis=1)
    >>> float(proxy_isa_loss(np.array([0, 1]), similarities)[0])
    3.5678...
    """
    similarities = ops.convert_to_tensor(similarities)
    if len(similarities.shape) == 2:
        return proxy_anchor_loss(labels, similarities, scale, margin)
    if similarities.shape[1] != 2:
        raise ValueError(
            "`similarities` must be cosines and weights of shape (batch, 2, "
            "classes), the output of `SampleAwareProxies`. Received: shape "
            f"{tuple(similarities.shape)}"
        )
    cosines, weights = similarities[:, 0], similarities[:, 1]
    own = ops.one_hot(labels, cosines.shape[-1], dtype="bool")
    zero = ops.cast(0.0, cosines.dtype)
    to_own = ops.sum(ops.where(own, cosines, zero), axis=1)
    weights_of_own = ops.sum(ops.where(own, weights, zero), axis=1)
    value = attraction_to_proxies(
        labels, weights_of_own * scale * (margin - to_own), weights_of_own
    ) + repulsion_from_proxies(
        own, weights * scale * (cosines + margin), weights
    )
    return ops.broadcast_to(value, ops.shape(to_own))


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyISA(LogitsLoss):
    """Proxy-ISA: ProxyAnchor that weighs every pair of row and proxy.

    `L = 1/W+ sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-w_ic a (s_ic - d)))`
    `+ 1/W- sum_c log(1 + sum_{i: y_i != c} exp(w_ic a (s_ic + d)))`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, the weight
    `w_ic` of the pair, the scale `a` and the margin `d`. `W+` is the sum, over
    the classes `C+` in the batch, of the mean weight of their rows; `W-` that
    over all classes of the mean weight of the other rows. With all weights 1
    it is `ProxyAnchor`, and as there every row has the value of the batch.

    The loss has no state: it takes the output `(batch, 2, classes)` of
    `SampleAwareProxies`, which makes the weights.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"proxy_isa"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Raises:
        ValueError: If `scale` is not positive or `margin` not finite.

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
    # In place of centres there are cosines and weights.
    takes_centres = True

    def __init__(
        self,
        scale=32.0,
        margin=0.1,
        reduction="sum_over_batch_size",
        name="proxy_isa",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)

    def logits_loss(self, labels, logits):
        return proxy_isa_loss(labels, logits, self.scale, self.margin)

    def get_config(self):
        config = super().get_config()
        config.update({"scale": self.scale, "margin": self.margin})
        return config
