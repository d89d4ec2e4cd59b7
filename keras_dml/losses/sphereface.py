"""A margin that multiplies the angle between a row and its own proxy."""

import math

import keras
from keras import ops

from keras_dml.checks import positive_integer, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import margin_cross_entropy

# The slope grows with the square, beyond what float32 resolves.
MOST = 100


def sphereface_loss(labels, similarities, margin=4, scale=64.0):
    """Computes the cross-entropy with `scale * psi(theta)` for the own class.

    It never computes the angle itself, whose derivative is infinite at a
    cosine of 1. See `cosine_of_multiple`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`, cosines.
        margin: Integer. Defaults to `4`.
        scale: Float. Defaults to `64.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> cosines = np.array([[1.0, 0.0]])
    >>> loss = sphereface_loss(np.array([0]), cosines, scale=1.0)
    >>> float(loss[0])  # log(1 + exp(-1))
    0.31326168751822286
    """

    def own_of(cosine):
        value, slope = cosine_of_multiple(cosine, margin)
        return scale * value, scale * slope

    return margin_cross_entropy(labels, similarities, scale, own_of)


def cosine_of_multiple(cosine, times: int):
    """Returns `psi(theta) = (-1)^k cos(m theta) - 2 k`, and its slope.

    `k` is the whole part of `m theta / pi`: so `psi` falls all the way from
    `theta = 0` to pi. The cosine of a multiple is a polynomial of the cosine,
    that of Chebyshev. Beyond -1 and 1 it goes on as a line, for the polynomial
    of a number that is no cosine would overflow.

    Args:
        cosine: Float tensor of cosines.
        times: Positive integer, `m`.

    Returns:
        Tuple of two tensors of the shape and dtype of `cosine`: `psi`, and its
        derivative by the cosine.
    """
    inside = ops.clip(cosine, -1.0, 1.0)
    before, value = ops.ones_like(inside), inside
    slope_before, slope = ops.zeros_like(cosine), ops.ones_like(cosine)
    for _ in range(times - 1):
        before, value, slope_before, slope = (
            value,
            2.0 * inside * value - before,
            slope,
            2.0 * value + 2.0 * inside * slope - slope_before,
        )
    turns = sum(
        ops.cast(inside < math.cos(turn * math.pi / times), inside.dtype)
        for turn in range(1, times)
    )
    sign = 1.0 - 2.0 * (turns % 2)
    slope = sign * slope
    beyond = slope * (cosine - inside)
    return sign * value - 2.0 * turns + beyond, slope


@keras.saving.register_keras_serializable(package="keras_dml")
class SphereFace(LogitsLoss):
    """SphereFace: cross-entropy that multiplies the angle to the true class.

    `L = -log(exp(s psi(theta_y)) / (exp(s psi(theta_y)) + rest))` with
    `rest = sum_{c != y} exp(s cos(theta_c))`,
    `psi(theta) = (-1)^k cos(m theta) - 2 k`, `k = floor(m theta / pi)`,

    the angle `theta_c` between the row and the proxy of class `c`, the margin
    `m` and the scale `s`. The paper scales by the length of the embedding;
    here the scale is fixed, as in ArcFace. It takes the output of
    `Proxies(metric="cosine")` without `ScaledLogits`.

    Args:
        margin: Integer from 1 to 100, `m`. Defaults to `4`.
        scale: Positive float, `s`. Defaults to `64.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `margin` is no integer from 1 to 100, or `scale` is not
            positive.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=SphereFace(margin=2, scale=30.0))
    ```

    Reference:
        Liu et al., "SphereFace: Deep Hypersphere Embedding for Face
        Recognition", 2017, equation 7.
    """

    takes = "similarities"

    def __init__(self, margin=4, scale=64.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = positive_integer("margin", margin, most=MOST)
        self.scale = positive_number("scale", scale)

    def logits_loss(self, labels, logits):
        return sphereface_loss(labels, logits, self.margin, self.scale)
