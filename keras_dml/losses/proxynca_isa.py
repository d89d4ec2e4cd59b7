"""ProxyNCA with a weight for each pair of a row and a proxy."""

import keras
from keras import ops

from keras_dml.losses.base import LogitsLoss
from keras_dml.ops.sample_aware import split_exponents


def proxynca_isa_loss(labels, exponents):
    """Computes `proxynca_loss` of logits that are multiplied by weights.

    Args:
        labels: Integer tensor `(batch,)`, not used: the exponents mark the
            column of the class of each row.
        exponents: Float tensor `(batch, 1, classes + 3)`, the output of
            `SampleAwareProxies` of at least two classes.

    Returns:
        Tensor `(batch,)` of the dtype of `exponents`.

    Raises:
        ValueError: If `exponents` has another shape, or there is one class.

    Example:

    >>> exponents = np.array([[[-np.inf, 0.0, 0.0, -6.0, 0.5, 2.0]]])
    >>> float(proxynca_isa_loss(np.array([0]), exponents)[0])  # log(2) - 6
    -5.306852819440055
    """
    del labels
    parts = split_exponents(ops.convert_to_tensor(exponents), "proxynca_isa")
    if parts.num_classes < 2:
        raise ValueError(
            "`SampleAwareProxies` must have at least two classes: without a "
            "negative there is nothing to compare with. Received: "
            f"{parts.num_classes}"
        )
    others = parts.columns[:, : parts.num_classes]
    return ops.logsumexp(others, axis=1) + parts.own


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyNCAISA(LogitsLoss):
    """ProxyNCA that weights pairs of rows and proxies as Proxy-ISA does.

    `L = -w_iy a s_iy + log sum_{c != y} exp(w_ic a s_ic)`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, the weight
    `w_ic` of the pair and the scale `a`. It takes the output of
    `SampleAwareProxies(scale=12.0, margin=0.0)`; a margin `d` adds
    `d (w_iy + w_ic)` to the exponents. With all weights 1 the loss equals
    `ProxyNCA` of cosines times `a`.

    The paper shows one curve of this loss and gives no formula. As in its
    equation 13, the weights are inside the exponents and have no gradient. As
    in the ProxyNCA of the authors' code, which has no weights, the loss scales
    cosines and leaves the positive out of the sum.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `y_pred` is not the output of `SampleAwareProxies`.

    Example:

    ```python
    head = SampleAwareProxies(98, scale=12.0, margin=0.0, name="proxies")
    model = keras.Model([images, labels], head([embedding, labels]))
    model.compile("adam", loss=ProxyNCAISA())
    model.fit([x, y], y, epochs=20, callbacks=[CountEpochs()])
    ```

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, section E.2 and figure 11b.
    """

    takes = "weighted_similarities"
    takes_centers = True
    column_per_class = False

    def logits_loss(self, labels, logits):
        return proxynca_isa_loss(labels, logits)
