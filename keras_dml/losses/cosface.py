"""A margin on the cosine between a row and the proxy of its class."""

import keras
from keras import ops

from keras_dml.checks import finite_number, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import margin_cross_entropy


def cosface_loss(labels, similarities, margin=0.35, scale=64.0):
    """Computes the cross-entropy of `scale * (s_c - margin [c = y])`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`.
        margin: Float. Defaults to `0.35`.
        scale: Float. Defaults to `64.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> loss = cosface_loss(np.array([0]), np.eye(2)[:1], 0.0, scale=1.0)
    >>> float(loss[0])  # log(1 + exp(-1))
    0.31326168751822286
    """

    def own_of(similarity):
        slope = ops.cast(scale, similarity.dtype)
        return scale * (similarity - margin), slope

    return margin_cross_entropy(labels, similarities, scale, own_of)


@keras.saving.register_keras_serializable(package="keras_dml")
class CosFace(LogitsLoss):
    """CosFace: cross-entropy with a margin on the cosine to the true class.

    `L = -log(exp(s (c_y - m)) / (exp(s (c_y - m)) + sum_{c != y} exp(s c_c)))`
    with the cosine `c_c` between the row and the proxy of class `c`, the
    margin `m` and the scale `s`; also called AM-Softmax. It takes the output
    of `Proxies(metric="cosine")` without `ScaledLogits`.

    Args:
        margin: Float, `m`. Defaults to `0.35`.
        scale: Positive float, `s`. Defaults to `64.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `scale` is not positive or `margin` is not finite.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=CosFace(margin=0.35, scale=64.0))
    ```

    Reference:
        Wang et al., "CosFace: Large Margin Cosine Loss for Deep Face
        Recognition", 2018, equation 4.
    """

    takes = "similarities"

    def __init__(self, margin=0.35, scale=64.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = finite_number("margin", margin)
        self.scale = positive_number("scale", scale)

    def logits_loss(self, labels, logits):
        return cosface_loss(labels, logits, self.margin, self.scale)
