"""A margin that multiplies the angle, on rows and proxies of any length."""

import keras
from keras import ops

from keras_dml.checks import positive_integer, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import softmax_loss
from keras_dml.losses.sphereface import MOST, cosine_of_multiple


def large_margin_softmax_loss(labels, products, lengths, margin=4, scale=1.0):
    """Computes the cross-entropy with `scale |x| |p_y| psi(theta_y)`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        products: Float tensor `(batch, classes)`, `x . p_c`.
        lengths: Float tensor `(batch, classes)`, `|x| |p_c|`.
        margin: Integer. Defaults to `4`.
        scale: Float. Defaults to `1.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `products`, never negative.

    Example:

    >>> products, lengths = np.array([[2.0, 0.0]]), np.array([[2.0, 2.0]])
    >>> loss = large_margin_softmax_loss(np.array([0]), products, lengths)
    >>> float(loss[0])  # log(1 + exp(-2))
    0.1269280110429726
    """
    products = ops.convert_to_tensor(products)
    true = ops.one_hot(labels, products.shape[1], dtype="bool")
    own = ops.sum(ops.where(true, products, 0.0), axis=1)
    length = ops.sum(ops.where(true, lengths, 0.0), axis=1)
    value, _ = cosine_of_multiple(ops.divide_no_nan(own, length), margin)
    logits = ops.where(true, (length * value)[:, None], products)
    return softmax_loss(labels, scale * logits)


@keras.saving.register_keras_serializable(package="keras_dml")
class LargeMarginSoftmax(LogitsLoss):
    """L-Softmax: cross-entropy that multiplies the angle to the true class.

    `L = -log(exp(s |x| |p_y| psi(theta_y)) / (exp(s |x| |p_y| psi(theta_y))`
    `+ sum_{c != y} exp(s x . p_c)))`,
    `psi(theta) = (-1)^k cos(m theta) - 2 k`, `k = floor(m theta / pi)`,

    with the angle `theta_c` between the row `x` and the proxy `p_c` of class
    `c`, the margin `m` and the scale `s`. Rows and proxies keep their lengths,
    as in a plain softmax classifier; `SphereFace` is this loss for vectors of
    length 1. It takes the output of
    `Proxies(metric="dot", unit_proxies=False, lengths=True)`.

    Args:
        margin: Integer from 1 to 100, `m`; with `1` it is `Softmax`. Defaults
            to `4`.
        scale: Positive float, `s`. Defaults to `1.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `margin` is no integer from 1 to 100, `scale` is not
            positive, or `y_pred` has another shape.

    Example:

    ```python
    layer = Proxies(98, "dot", unit_proxies=False, lengths=True, name="proxies")
    model = keras.Model(images, layer(embedding))
    model.compile("adam", loss=LargeMarginSoftmax(margin=2))
    ```

    Reference:
        Liu et al., "Large-Margin Softmax Loss for Convolutional Neural
        Networks", 2016, equations 4 to 6.
    """

    takes = "products_and_lengths"
    takes_centers = True

    def __init__(self, margin=4, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = positive_integer("margin", margin, most=MOST)
        self.scale = positive_number("scale", scale)

    def logits_loss(self, labels, logits):
        if tuple(logits.shape[2:]) != (2,):
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be products and "
                "lengths of shape (batch, classes, 2), the output of "
                "`Proxies(metric='dot', unit_proxies=False, lengths=True)`. "
                f"Received: y_pred.shape={tuple(logits.shape)}"
            )
        return large_margin_softmax_loss(
            labels, logits[..., 0], logits[..., 1], self.margin, self.scale
        )
