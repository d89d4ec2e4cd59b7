"""Softmax cross-entropy on the logits of the classes."""

import keras
from keras import ops

from keras_dml.losses.checks import full_precision
from keras_dml.losses.logits_loss import LogitsLoss


def softmax_cross_entropy(labels, logits):
    """`-log softmax(logits)_y = -z_y + log sum_c exp(z_c)` for every row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        logits: Float tensor `(batch, classes)`.

    Returns:
        Tensor `(batch,)` of the dtype of `logits`, never negative.

    Example:

    >>> float(softmax_cross_entropy(np.array([0]), np.zeros((1, 4)))[0])
    1.3862943611198906
    """
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


@keras.saving.register_keras_serializable(package="keras_dml")
class Softmax(LogitsLoss):
    """Cross-entropy of a softmax classifier.

    `L = -z_y + log sum_c exp(z_c)` with the logits `z = W^T f + b` of a plain
    `Dense` layer, or of `Proxies(metric="dot", unit_proxies=False)`.

    Args:
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"softmax"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Example:

    ```python
    model.compile("adam", loss=Softmax())
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018, equation 2 with
        alpha = 1.
    """

    def __init__(
        self, reduction="sum_over_batch_size", name="softmax", dtype=None
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )

    def logits_loss(self, labels, logits):
        return softmax_cross_entropy(labels, logits)
