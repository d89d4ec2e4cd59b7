"""Squared differences of cosines and the labels."""

import keras
from keras import ops

from keras_dml.losses.base import LogitsLoss


def p2s_grad_loss(labels, similarities):
    """Computes `sum_c (s_c - [c = y])^2` of each row.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)`, cosines.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> cosines = np.array([[0.5, 0.5]])
    >>> float(p2s_grad_loss(np.array([0]), cosines)[0])  # 0.5^2 + 0.5^2
    0.5
    """
    own = ops.one_hot(labels, similarities.shape[1], dtype=similarities.dtype)
    return ops.sum(ops.square(similarities - own), axis=1)


@keras.saving.register_keras_serializable(package="keras_dml")
class P2SGrad(LogitsLoss):
    """Draws the cosine to the own proxy to 1 and all others to 0.

    `L = sum_c (s_c - [c = y])^2` with the cosines `s_c` of a row and the
    proxies. Its gradient is twice that of a softmax whose probabilities are
    replaced by cosines: it has no scale, and does not fade for a row that is
    right by a little. It takes the output of `Proxies(metric="cosine")`
    without `ScaledLogits`.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=P2SGrad())
    ```

    Reference:
        Zhang et al., "P2SGrad: Refined Gradients for Optimizing Deep Face
        Models", 2019, equation 11.
    """

    takes = "similarities"

    def logits_loss(self, labels, logits):
        return p2s_grad_loss(labels, logits)
