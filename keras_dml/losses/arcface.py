"""A margin on the angle between a row and the proxy of its class."""

import math

import keras
from keras import ops

from keras_dml.checks import boolean, in_interval, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import margin_cross_entropy


def arcface_loss(
    labels, similarities, margin=0.5, scale=64.0, straight_through=False
):
    """Computes the cross-entropy of `scale * cos(theta_c + margin [c = y])`.

    It never computes the angle itself, whose derivative is infinite at a
    cosine of 1. See `cosine_of_larger_angle`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`, cosines.
        margin: Float, in radians. Defaults to `0.5`.
        scale: Float. Defaults to `64.0`.
        straight_through: Boolean, whether the gradient ignores the margin.
            Defaults to `False`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> cosines = np.array([[1.0, 0.0]])
    >>> loss = arcface_loss(np.array([0]), cosines, margin=0.0, scale=1.0)
    >>> float(loss[0])  # log(1 + exp(-1))
    0.31326168751822286
    """

    def own_of(cosine):
        slope = 1.0 if straight_through else _slope(cosine, margin)
        return scale * cosine_of_larger_angle(cosine, margin), scale * slope

    return margin_cross_entropy(labels, similarities, scale, own_of)


def cosine_of_larger_angle(cosine, margin: float):
    """Returns `cos(theta + m) = cos(theta) cos(m) - sin(theta) sin(m)`.

    Where `theta + m` exceeds pi, its cosine would rise again; there the result
    is `cos(theta) - m sin(m)`. The sine is clipped to at least 1e-3, which
    bounds the gradient near `theta = 0`.

    Args:
        cosine: Float tensor of cosines.
        margin: Float, `m` in radians, from 0 to pi.

    Returns:
        Tensor of the shape and dtype of `cosine`.
    """
    shifted = cosine * math.cos(margin) - _sine(cosine) * math.sin(margin)
    return ops.where(
        cosine > -math.cos(margin),
        shifted,
        cosine - margin * math.sin(margin),
    )


def cosine_of_smaller_angle(cosine, margin: float):
    """Returns `cos(theta - m) = cos(theta) cos(m) + sin(theta) sin(m)`.

    The sine is clipped as in `cosine_of_larger_angle`.

    Args:
        cosine: Float tensor of cosines.
        margin: Float, `m` in radians, from 0 to pi.

    Returns:
        Tensor of the shape and dtype of `cosine`.
    """
    return cosine * math.cos(margin) + _sine(cosine) * math.sin(margin)


def _slope(cosine, margin):
    """Returns the derivative of `cosine_of_larger_angle`."""
    sine = _sine(cosine)
    of_sine = ops.where(sine > 1e-3, -cosine / sine, ops.zeros_like(cosine))
    return ops.where(
        cosine > -math.cos(margin),
        math.cos(margin) - of_sine * math.sin(margin),
        ops.ones_like(cosine),
    )


def _sine(cosine):
    return ops.sqrt(ops.maximum(1.0 - ops.square(cosine), 1e-6))


def angle(name: str, value) -> float:
    """Returns `value` as a float; raises unless it is in [0, pi)."""
    advice = "It is an angle in radians; 28.6 degrees are 0.5."
    return in_interval(name, value, 0, math.pi, "left", advice)


@keras.saving.register_keras_serializable(package="keras_dml")
class ArcFace(LogitsLoss):
    """ArcFace: cross-entropy with a margin on the angle to the true class.

    `L = -log(exp(s cos(theta_y + m)) / (exp(s cos(theta_y + m)) + rest))`
    with `rest = sum_{c != y} exp(s cos(theta_c))`, the angle `theta_c` between
    the row and the proxy of class `c`, the margin `m` and the scale `s`. It
    takes the output of `Proxies(metric="cosine")` without `ScaledLogits`.

    Where `theta_y + m` exceeds pi, `cos(theta_y) - m sin(m)` replaces its
    cosine, so that the loss still falls when the row moves closer.

    Args:
        margin: Float, `m` in radians, from 0 to below pi. Defaults to `0.5`,
            28.6 degrees.
        scale: Positive float, `s`. Defaults to `64.0`.
        straight_through: Boolean, whether the gradient ignores the margin, as
            in the authors' code: it is `s` times the gradient of the softmax.
            The value does not change. Defaults to `False`, the true gradient.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `margin` is not in [0, pi) or `scale` is not positive.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=ArcFace(margin=0.5, scale=64.0))
    ```

    Reference:
        Deng et al., "ArcFace: Additive Angular Margin Loss for Deep Face
        Recognition", 2019, equation 3.
    """

    takes = "similarities"

    def __init__(
        self, margin=0.5, scale=64.0, straight_through=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.margin = angle("margin", margin)
        self.scale = positive_number("scale", scale)
        self.straight_through = boolean("straight_through", straight_through)

    def logits_loss(self, labels, logits):
        return arcface_loss(
            labels, logits, self.margin, self.scale, self.straight_through
        )
