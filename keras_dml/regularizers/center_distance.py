"""Merges the centres of a class that are not needed."""

import keras
from keras import ops

from keras_dml.ops.unit_rows import unit_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class CentreDistance(keras.regularizers.Regularizer):
    """Regularizer that draws the centres of a class together.

    `strength / (C K (K - 1)) sum_c sum_{s < t} |u(w_cs) - u(w_ct)|`

    for `K` centres `w` of each of `C` classes, `u(v) = v / |v|`. The distance
    is `sqrt(2 - 2 u . u + 1e-5)`, whose gradient is finite at equal centres.
    Give it to `Proxies` as `regularizer`.

    Args:
        strength: Float, `tau`. Defaults to `0.2`.

    Raises:
        ValueError: If `strength` is negative, or the weight has no centres.

    Example:

    ```python
    proxies = Proxies(98, centres=10, regularizer=CentreDistance(0.2))
    ```

    Reference:
        Qian et al., "SoftTriple Loss: Deep Metric Learning Without Triplet
        Sampling", 2019, equation 8 (the divisor is the authors' code's).
    """

    def __init__(self, strength=0.2):
        if not strength >= 0:
            raise ValueError(
                "`strength` must be a number of at least zero. "
                f"Received: strength={strength!r}"
            )
        self.strength = float(strength)

    def __call__(self, x):
        if len(x.shape) != 3 or x.shape[1] < 2:
            raise ValueError(
                "`CentreDistance` needs proxies of shape (classes, centres, "
                "dim) with at least two centres; use "
                f"`Proxies(centres=...)`. Received: shape {tuple(x.shape)}"
            )
        classes, centres, _ = x.shape
        unit = unit_rows(x)
        cosines = ops.matmul(unit, ops.transpose(unit, (0, 2, 1)))
        squared = ops.maximum(2.0 - 2.0 * cosines, 0.0)
        pairs = ops.triu(ops.sqrt(squared + 1e-5), k=1)
        divisor = classes * centres * (centres - 1)
        return self.strength * ops.sum(pairs) / divisor

    def get_config(self):
        return {"strength": self.strength}
