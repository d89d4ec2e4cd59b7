"""The proxy assignment probability of ProxyNCA++."""

import keras

from keras_dml.losses.checks import full_precision
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.softmax import softmax_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyNCAPlusPlus(LogitsLoss):
    """ProxyNCA++: the probability of being assigned to the own proxy.

    `L = d_y / T + log sum_c exp(-d_c / T)` with the squared Euclidean
    distance `d_c = |u(x) - u(p_c)|**2`; unlike `ProxyNCA` the sum runs over
    all classes. The loss has no temperature: it takes the logits `-d / T` of
    `Proxies(metric="neg_squared_euclidean")` and `ScaledLogits(scale=1 / T)`;
    the paper's `T` is 1/9. It equals `NormalizedSoftmax` with the temperature
    `T / 2`.

    Args:
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"proxynca_pp"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Example:

    ```python
    proxies = Proxies(98, metric="neg_squared_euclidean", name="proxies")
    logits = ScaledLogits(scale=9.0, name="logits")(proxies(embedding))
    model = keras.Model(images, logits)
    model.compile("adam", loss=ProxyNCAPlusPlus())
    ```

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, equations 4 and 5.
    """

    def __init__(
        self,
        reduction="sum_over_batch_size",
        name="proxynca_pp",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )

    def logits_loss(self, labels, logits):
        return softmax_loss(labels, logits)
