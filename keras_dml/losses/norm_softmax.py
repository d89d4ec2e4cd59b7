"""Softmax cross-entropy on cosine similarities."""

import keras

from keras_dml.losses.checks import full_precision
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.softmax import softmax_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class NormalizedSoftmax(LogitsLoss):
    """Cross-entropy on scaled cosine similarities to the proxies.

    `L = -s_y / T + log sum_c exp(s_c / T)` with `s_c = u(x) . u(p_c)`. The
    loss has no temperature: it takes the logits `s / T` of
    `Proxies(metric="cosine")` and `ScaledLogits(scale=1 / T)`. It equals
    `ProxyNCAPlusPlus` with the temperature `2 T`.

    Args:
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"norm_softmax"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

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

    def __init__(
        self,
        reduction="sum_over_batch_size",
        name="norm_softmax",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )

    def logits_loss(self, labels, logits):
        return softmax_loss(labels, logits)
