"""Regularizer that pushes the proxies of different classes apart."""

import keras

from keras_dml.arguments import own_config
from keras_dml.checks import finite_number, positive_number
from keras_dml.ops.similarities import mutual_repulsion, unit_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyRepulsion(keras.regularizers.Regularizer):
    """Regularizer that pushes the proxies of different classes apart.

    `strength / C sum_c log(1 + sum_{k != c} exp(a (u(p_c) . u(p_k) + d)))`
    for the proxies `p` of `C` classes, `u(v) = v / |v|`. Pass it to `Proxies`
    as `regularizer`. Time grows with the square of the number of classes.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        strength: Positive float, a factor. Defaults to `1.0`.

    Raises:
        ValueError: If an argument is out of range, or the weight has several
            centers.

    Example:

    ```python
    proxies = Proxies(98, regularizer=ProxyRepulsion(), name="proxies")
    ```

    Reference:
        Psomas, "Metric Learning: a Deep Dive", the second term of OurLoss1.
    """

    def __init__(self, scale=32.0, margin=0.1, strength=1.0):
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)
        self.strength = positive_number("strength", strength)

    def __call__(self, x):
        if len(x.shape) != 2:
            raise ValueError(
                "`ProxyRepulsion` needs proxies of shape (classes, dim), one "
                f"for each class. Received: shape {tuple(x.shape)}"
            )
        unit = unit_rows(x)
        return self.strength * mutual_repulsion(unit, self.scale, self.margin)

    def get_config(self):
        return own_config(self)
