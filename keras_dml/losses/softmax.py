"""Softmax cross-entropy on the logits of the classes."""

import keras
from keras import ops

from keras_dml.losses.base import LogitsLoss
from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.reductions import row_sums
from keras_dml.ops.rows import places


def softmax_loss(labels, logits):
    """Computes `-log softmax(z)_y = -z_y + log sum_c exp(z_c)` for every row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        logits: Float tensor `(batch, classes)`, `z`.

    Returns:
        Tensor `(batch,)` of the dtype of `logits`, never negative.

    Example:

    >>> float(softmax_loss(np.array([0]), np.zeros((1, 4)))[0])
    1.3862943611198906
    """
    return _cross_entropy(labels)(ops.convert_to_tensor(logits))


def margin_cross_entropy(labels, similarities, scale, own_of):
    """Computes `softmax_loss` with a margin on the logit of the true class.

    The logits are `scale * s_c` for `c != y`, and `own_of(s_y)` for `y`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`, `s`.
        scale: Float.
        own_of: Function of the similarities `(batch,)` to the true classes
            that returns their logits and the derivatives of these.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.
    """
    similarities = ops.convert_to_tensor(similarities)
    return _cross_entropy(labels, scale, own_of)(similarities)


def _cross_entropy(labels, scale=None, own_of=None):
    """Returns the loss as a function with a gradient of few passes."""
    labels = ops.cast(labels, "int32")
    true = places(labels)

    @custom_gradient
    def cross_entropy(logits):
        own = ops.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        slope = None
        if own_of is not None:
            own, slope = own_of(own)
            logits = ops.scatter_update(scale * logits, true, own)
        largest = ops.max(logits, axis=1)
        exponentials = ops.exp(logits - largest[:, None])
        total = row_sums(exponentials)

        def gradient(upstream):
            share = ops.exp(own - largest) / total
            of_own = (share - 1.0) * upstream
            factor = upstream / total
            if own_of is not None:
                of_own, factor = slope * of_own, scale * factor
            others = exponentials * factor[:, None]
            return ops.scatter_update(others, true, of_own)

        return ops.log(total) + (largest - own), gradient

    return cross_entropy


@keras.saving.register_keras_serializable(package="keras_dml")
class Softmax(LogitsLoss):
    """Cross-entropy of a softmax classifier.

    `L = -z_y + log sum_c exp(z_c)` with the logits `z = W^T f + b` of a plain
    `Dense` layer, or of `Proxies(metric="dot", unit_proxies=False)`.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    model.compile("adam", loss=Softmax())
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018, equation 2 with
        alpha = 1.
    """

    def logits_loss(self, labels, logits):
        return softmax_loss(labels, logits)
