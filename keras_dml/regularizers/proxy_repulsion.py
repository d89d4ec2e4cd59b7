"""Pushes proxies from each other."""

import keras
from keras import ops

from keras_dml.losses.checks import finite_number, positive_number
from keras_dml.ops.log_sum_exp import log_one_plus_sum_exp
from keras_dml.ops.unit_rows import unit_rows

# Similarities of proxies with proxies that are held at a time, 64 MB.
BLOCK_ENTRIES = 2**24


def mutual_repulsion(vectors, scale, margin):
    """`1/C sum_c log(1 + sum_{k != c} exp(scale (v_c . v_k + margin)))`.

    The products are made in blocks of rows, and made again in the backward
    pass, so that memory grows with the number of vectors and not with its
    square. Time grows with the square.

    Args:
        vectors: Float tensor `(C, dim)`, of a static number of rows.
        scale: Float.
        margin: Float.

    Returns:
        Scalar tensor of the dtype of `vectors`.

    Example:

    >>> float(mutual_repulsion(np.eye(2), scale=1.0, margin=0.0))  # log(2)
    0.6931471805599453
    """
    vectors = ops.convert_to_tensor(vectors)
    count = vectors.shape[0]
    size = max(1, BLOCK_ENTRIES // count)

    def sum_of_rows(rows, vectors, own):
        products = ops.matmul(rows, ops.transpose(vectors))
        others = ops.not_equal(own[:, None], ops.arange(count)[None, :])
        return ops.sum(
            log_one_plus_sum_exp(scale * (products + margin), others, axis=1)
        )

    if size < count:
        sum_of_rows = keras.remat(sum_of_rows)
    total = sum(
        sum_of_rows(
            vectors[start : start + size],
            vectors,
            ops.arange(start, min(start + size, count)),
        )
        for start in range(0, count, size)
    )
    return total / count


@keras.saving.register_keras_serializable(package="keras_dml")
class ProxyRepulsion(keras.regularizers.Regularizer):
    """Regularizer that pushes the proxies of different classes apart.

    `strength / C sum_c log(1 + sum_{k != c} exp(a (u(p_c) . u(p_k) + d)))`
    for the proxies `p` of `C` classes, `u(v) = v / |v|`. Give it to `Proxies`
    as `regularizer`. Time grows with the square of the number of classes.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        strength: Positive float, a factor. Defaults to `1.0`.

    Raises:
        ValueError: If an argument is out of range, or the weight has several
            centres.

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
        return {
            "scale": self.scale,
            "margin": self.margin,
            "strength": self.strength,
        }
