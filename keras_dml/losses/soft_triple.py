"""Softmax over classes with several centers each."""

import keras
from keras import ops

from keras_dml.checks import finite_number, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.cosface import cosface_loss
from keras_dml.ops.gradients import custom_gradient


def soft_triple_loss(labels, similarities, margin=0.01, scale=20.0, gamma=10.0):
    """Computes the cross-entropy of `scale * (s_c - margin [c = y])`.

    The similarity to a class is a weighted mean of the similarities to its
    centers, `s_c = sum_k softmax_k(gamma s_ck) s_ck`.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes, centers)`, or
            `(batch, classes)` for one center.
        margin: Float, `delta`. Defaults to `0.01`.
        scale: Float, `lambda`. Defaults to `20.0`.
        gamma: Float, multiplies the similarities before the softmax over the
            centers. Defaults to `10.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, never negative.

    Example:

    >>> cosines = np.array([[[1.0, 1.0], [0.0, 0.0]]])
    >>> loss = soft_triple_loss(np.array([0]), cosines, 0.0, scale=1.0)
    >>> float(loss[0])  # log(1 + exp(-1))
    0.31326168751822286
    """
    similarities = ops.convert_to_tensor(similarities)
    if similarities.shape[-1] == 1 and len(similarities.shape) == 3:
        similarities = similarities[:, :, 0]
    if len(similarities.shape) == 3:
        similarities = _means_of_centers(gamma)(similarities)
    return cosface_loss(labels, similarities, margin, scale)


def _means_of_centers(gamma):
    """Returns a function for `sum_k softmax_k(gamma s_k) s_k`.

    The sum is over the last axis. The gradient is written out as
    `softmax_k(gamma s_k) (1 + gamma (s_k - mean))`: this takes a third of the
    passes that differentiating the softmax takes.
    """

    @custom_gradient
    def means(similarities):
        logits = gamma * similarities
        largest = ops.max(logits, axis=-1, keepdims=True)
        exponentials = ops.exp(logits - largest)
        total = ops.sum(exponentials, axis=-1)
        mean = ops.sum(exponentials * similarities, axis=-1) / total

        def gradient(upstream):
            share = upstream / total
            constant = (share * (1.0 - gamma * mean))[:, :, None]
            factor = (share * gamma)[:, :, None]
            return exponentials * (constant + factor * similarities)

        return mean, gradient

    return means


@keras.saving.register_keras_serializable(package="keras_dml")
class SoftTriple(LogitsLoss):
    """SoftTriple: cross-entropy with several centers for each class.

    `L = -log softmax(scale (s - margin y))_y` with the one-hot label `y` and
    `s_c = sum_k softmax_k(gamma s_ck) s_ck`, the mean of the cosines `s_ck` to
    the centers of class `c`, in which closer centers weigh more. It takes the
    output of `Proxies(metric="cosine", centers=K)` without `ScaledLogits`.

    The loss of the paper has one more term, which depends on the centers
    alone: add it as the regularizer `CenterDistance` of `Proxies`.

    Args:
        margin: Float, `delta`. Defaults to `0.01`.
        scale: Positive float, `lambda`. Defaults to `20.0`.
        gamma: Positive float, multiplies the cosines before the softmax over
            the centers. The paper and the authors' code divide by its
            inverse, 0.1. Defaults to `10.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `scale` or `gamma` is not positive, or `margin` is not
            finite.

    Example:

    ```python
    centers = Proxies(
        98, centers=10, regularizer=CenterDistance(0.2), name="proxies"
    )
    model = keras.Model(images, centers(embedding))
    model.compile("adam", loss=SoftTriple())
    ```

    Reference:
        Qian et al., "SoftTriple Loss: Deep Metric Learning Without Triplet
        Sampling", 2019, equations 5 and 6.
    """

    takes = "similarities"
    takes_centers = True

    def __init__(self, margin=0.01, scale=20.0, gamma=10.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = finite_number("margin", margin)
        self.scale = positive_number("scale", scale)
        self.gamma = positive_number("gamma", gamma)

    def logits_loss(self, labels, logits):
        return soft_triple_loss(
            labels, logits, self.margin, self.scale, self.gamma
        )
