"""Neighborhood component analysis with proxies, without the positive."""

import keras
from keras import ops

from keras_dml.losses.base import LogitsLoss


def proxynca_loss(labels, logits):
    """Computes `-z_y + log sum_{c != y} exp(z_c)` for every row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        logits: Float tensor `(batch, classes)` of at least two classes.

    Returns:
        Tensor `(batch,)` of the dtype of `logits`; it has no lower bound.

    Raises:
        ValueError: If there is only one class.

    Example:

    >>> logits = np.array([[2.0, 0.0, 0.0]])
    >>> float(proxynca_loss(np.array([0]), logits)[0])  # log(2) - 2
    -1.3068528194400546
    """
    logits = ops.convert_to_tensor(logits)
    num_classes = logits.shape[-1]
    if num_classes is not None and num_classes < 2:
        raise ValueError(
            "`logits` must have at least two classes: without a negative "
            f"there is nothing to compare with. Received: {tuple(logits.shape)}"
        )
    positive = ops.one_hot(labels, num_classes, dtype="bool")
    zero = ops.cast(0.0, logits.dtype)
    nothing = ops.cast(float("-inf"), logits.dtype)
    own = ops.sum(ops.where(positive, logits, zero), axis=-1)
    others = ops.logsumexp(ops.where(positive, nothing, logits), axis=-1)
    return others - own


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyNCA(LogitsLoss):
    """ProxyNCA: pulls a row to the proxy of its class and away from others.

    `L = d_y / T + log sum_{c != y} exp(-d_c / T)` with the squared Euclidean
    distance `d_c = |u(x) - u(p_c)|**2`. The loss has no temperature: it takes
    the logits `-d / T` of `Proxies(metric="neg_squared_euclidean")` and
    `ScaledLogits(scale=1 / T)`.

    The positive is not in the denominator, so this is not a cross-entropy. The
    loss has no lower bound in the logits and is negative for a row close to
    its proxy, down to `log(classes - 1) - 4 / T` on unit vectors.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    proxies = Proxies(98, metric="neg_squared_euclidean", name="proxies")
    logits = ScaledLogits(scale=9.0, name="logits")(proxies(embedding))
    model = keras.Model(images, logits)
    model.compile("adam", loss=ProxyNCA())
    ```

    Reference:
        Movshovitz-Attias et al., "No Fuss Distance Metric Learning using
        Proxies", 2017; Teh, DeVries and Taylor, "ProxyNCA++", 2020,
        equation 3.
    """

    def logits_loss(self, labels, logits):
        return proxynca_loss(labels, logits)
