"""Softmax cross-entropy on cosine similarities."""

import keras

from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import softmax_loss


def norm_softmax_loss(labels, logits):
    """Computes `-s_y / T + log sum_c exp(s_c / T)` of cosines `s`, per row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        logits: Float tensor `(batch, classes)`, cosines divided by the
            temperature `T`.

    Returns:
        Tensor `(batch,)` of the dtype of `logits`, never negative.

    Example:

    >>> cosines = np.array([[1.0, 0.0]])
    >>> float(norm_softmax_loss(np.array([0]), cosines / 0.5)[0])
    0.1269280110429726
    """
    return softmax_loss(labels, logits)


@keras.saving.register_keras_serializable(package="keras_dml")
class NormalizedSoftmax(LogitsLoss):
    """Cross-entropy on scaled cosine similarities to the proxies.

    `L = -s_y / T + log sum_c exp(s_c / T)` with `s_c = u(x) . u(p_c)`. The
    loss has no temperature: it takes the logits `s / T` of
    `Proxies(metric="cosine")` and `ScaledLogits(scale=1 / T)`. It equals
    `ProxyNCAPlusPlus` with the temperature `2 T`.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    logits = ScaledLogits(scale=20.0, name="logits")(similarity)
    model = keras.Model(images, logits)
    model.compile("adam", loss=NormalizedSoftmax())
    ```

    Reference:
        Zhai and Wu, "Classification is a Strong Baseline for Deep Metric
        Learning", 2019.
    """

    def logits_loss(self, labels, logits):
        return norm_softmax_loss(labels, logits)
