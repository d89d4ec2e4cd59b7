"""A margin on the angle to the nearest of several proxies of a class."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.former import formerly
from keras_dml.losses.arcface import angle, arcface_loss
from keras_dml.losses.base import LogitsLoss


def sub_center_arcface_loss(labels, similarities, margin=0.5, scale=64.0):
    """Computes `arcface_loss` on the cosines to each class's nearest center.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes, centers)` of cosines, or
            `(batch, classes)` for one center.
        margin: Float, in radians. Defaults to `0.5`.
        scale: Float. Defaults to `64.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> cosines = np.array([[[0.2, 1.0], [0.0, -0.3]]])
    >>> loss = sub_center_arcface_loss(np.array([0]), cosines, 0.0, scale=1.0)
    >>> float(loss[0])  # log(1 + exp(-1))
    0.31326168751822286
    """
    similarities = ops.convert_to_tensor(similarities)
    if len(similarities.shape) == 3:
        similarities = ops.max(similarities, axis=-1)
    return arcface_loss(labels, similarities, margin, scale)


@formerly("SubCentreArcFace")
@keras.saving.register_keras_serializable(package="keras_dml")
class SubCenterArcFace(LogitsLoss):
    """Sub-center ArcFace: ArcFace on the nearest center of each class.

    `L = ArcFace(max_k cos(theta_ck))` with the angles `theta_ck` between the
    row and the centers of class `c`. Rows with a wrong label gather at a
    separate center and do not pull the center of the others. The loss takes
    the output of `Proxies(metric="cosine", centers=K)` without `ScaledLogits`.

    Args:
        margin: Float, in radians, from 0 to below pi. Defaults to `0.5`.
        scale: Positive float. Defaults to `64.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `margin` is not in [0, pi) or `scale` is not positive.

    Example:

    ```python
    centers = Proxies(num_classes=98, centers=3, name="proxies")
    model = keras.Model(images, centers(embedding))
    model.compile("adam", loss=SubCenterArcFace())
    ```

    Reference:
        Deng et al., "Sub-center ArcFace: Boosting Face Recognition by
        Large-scale Noisy Web Faces", 2020, equation 5.
    """

    takes = "similarities"
    takes_centers = True

    def __init__(self, margin=0.5, scale=64.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = angle("margin", margin)
        self.scale = positive_number("scale", scale)

    def logits_loss(self, labels, logits):
        return sub_center_arcface_loss(labels, logits, self.margin, self.scale)
