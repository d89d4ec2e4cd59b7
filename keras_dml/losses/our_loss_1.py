"""Pulls embeddings to their class proxy and pushes proxies apart."""

import keras
from keras import ops

from keras_dml.checks import finite_number, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.proxy_anchor import attraction_to_proxies


def our_loss_1_loss(labels, similarities, scale=32.0, margin=0.1):
    """Computes the first term of `OurLoss1`, the attraction to the proxies.

    `1/|C+| sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-a (s_ic - d)))`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)` of cosines.
        scale: Float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, the same value in
        every entry.

    Example:

    >>> value = our_loss_1_loss(np.array([0]), np.array([[0.1, 0.0]]))
    >>> float(value[0])  # log(2)
    0.6931471805599453
    """
    similarities = ops.convert_to_tensor(similarities)
    own = ops.one_hot(labels, similarities.shape[-1], dtype="bool")
    zero = ops.cast(0.0, similarities.dtype)
    to_own = ops.sum(ops.where(own, similarities, zero), axis=1)
    value = attraction_to_proxies(labels, scale * (margin - to_own))
    return ops.broadcast_to(value, ops.shape(to_own))


@keras.saving.register_keras_serializable(package="keras_dml")
class OurLoss1(LogitsLoss):
    """OurLoss1 of the thesis deck: ProxyAnchor with proxies as negatives.

    `L = 1/|C+| sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-a (s_ic - d)))`
    `+ 1/C sum_c log(1 + sum_{k != c} exp(a (p_c . p_k + d)))`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, unit proxies
    `p`, the scale `a` and the margin `d`. The classes `C+` are in the batch.
    This class computes the first term. The second depends on the proxies
    alone: add it as the regularizer `ProxyRepulsion` of `Proxies`, because
    without it nothing separates the classes. As in `ProxyAnchor`, every row
    has the value of the batch.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `scale` is not positive or `margin` is not finite.

    Example:

    ```python
    proxies = Proxies(98, regularizer=ProxyRepulsion(), name="proxies")
    model = keras.Model(images, proxies(embedding))
    model.compile("adam", loss=OurLoss1())
    ```

    Reference:
        Psomas, "Metric Learning: a Deep Dive", OurLoss1.
    """

    takes = "similarities"

    def __init__(self, scale=32.0, margin=0.1, **kwargs):
        super().__init__(**kwargs)
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)

    def logits_loss(self, labels, logits):
        return our_loss_1_loss(labels, logits, self.scale, self.margin)
