"""The proxy assignment probability of ProxyNCA++."""

import keras

from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.softmax import softmax_loss


def proxynca_pp_loss(labels, logits):
    """Computes `d_y / T + log sum_c exp(-d_c / T)` for every row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        logits: Float tensor `(batch, classes)`, minus the squared distances
            `d` of unit vectors, divided by the temperature `T`.

    Returns:
        Tensor `(batch,)` of the dtype of `logits`, never negative.

    Example:

    >>> distances = np.array([[0.0, 2.0]])
    >>> float(proxynca_pp_loss(np.array([0]), -distances)[0])
    0.1269280110429726
    """
    return softmax_loss(labels, logits)


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyNCAPlusPlus(LogitsLoss):
    """ProxyNCA++: raises the probability of assigning a row to its class.

    `L = d_y / T + log sum_c exp(-d_c / T)` with the squared Euclidean
    distance `d_c = |u(x) - u(p_c)|**2`; unlike `ProxyNCA` the sum runs over
    all classes. The loss has no temperature: it takes the logits `-d / T` of
    `Proxies(metric="neg_squared_euclidean")` and `ScaledLogits(scale=1 / T)`;
    the paper's `T` is 1/9. It equals `NormalizedSoftmax` with the temperature
    `T / 2`.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    proxies = Proxies(98, metric="neg_squared_euclidean", name="proxies")
    logits = ScaledLogits(scale=9.0, name="logits")(proxies(embedding))
    model = keras.Model(images, logits)
    model.compile("adam", loss=ProxyNCAPlusPlus())
    ```

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, equations 4 to
        6.
    """

    def logits_loss(self, labels, logits):
        return proxynca_pp_loss(labels, logits)
