"""Regularizer that pulls the centers of a class together."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import not_negative
from keras_dml.former import formerly
from keras_dml.ops.similarities import unit_rows


@formerly("CentreDistance")
@keras.saving.register_keras_serializable(package="keras_dml")
class CenterDistance(keras.regularizers.Regularizer):
    """Regularizer that pulls the centers of a class together.

    `strength / (C K (K - 1)) sum_c sum_{s < t} |u(w_cs) - u(w_ct)|`

    for `K` centers `w` of each of `C` classes, `u(v) = v / |v|`. The distance
    is `sqrt(2 - 2 u . u + 1e-5)`, whose gradient is finite at equal centers.
    Pass it to `Proxies` as `regularizer`.

    Args:
        strength: Float, `tau`. Defaults to `0.2`.

    Raises:
        ValueError: If `strength` is negative, or the weight has no centers.

    Example:

    ```python
    proxies = Proxies(98, centers=10, regularizer=CenterDistance(0.2))
    ```

    Reference:
        Qian et al., "SoftTriple Loss: Deep Metric Learning Without Triplet
        Sampling", 2019, equation 8 (with the divisor of the authors' code).
    """

    def __init__(self, strength=0.2):
        self.strength = not_negative("strength", strength)

    def __call__(self, x):
        if len(x.shape) != 3 or x.shape[1] < 2:
            raise ValueError(
                "`CenterDistance` needs proxies of shape (classes, centers, "
                "dim) with at least two centers; use "
                f"`Proxies(centers=...)`. Received: shape {tuple(x.shape)}"
            )
        classes, centers, _ = x.shape
        unit = unit_rows(x)
        cosines = ops.matmul(unit, ops.transpose(unit, (0, 2, 1)))
        squared = ops.maximum(2.0 - 2.0 * cosines, 0.0)
        pairs = ops.triu(ops.sqrt(squared + 1e-5), k=1)
        divisor = classes * centers * (centers - 1)
        return self.strength * ops.sum(pairs) / divisor

    def get_config(self):
        return own_config(self)
