"""N-pair loss on similarities along the manifold of a batch."""

import keras
from keras import ops

from keras_dml.checks import finite_number, not_negative
from keras_dml.losses.base import LogitsLoss
from keras_dml.ops.reductions import log_one_plus_sum_exp


def manifold_loss(labels, similarities, margin=5e-4, context_weight=1.0):
    """Computes `l(F) + context_weight l(cos F)` for each row.

    `l(s) = log(1 + sum_p exp(s_ip - s_iq + margin))` over the proxies `p` with
    `s_ip + margin >= s_iq`, but for the proxy `q` of the row.

    Args:
        labels: Integer tensor `(batch,)`. The proxy of a class is its remainder
            of a division by the number of proxies.
        similarities: Float tensor `(batch, proxies, 2)`, the output of
            `keras_dml.layers.ManifoldSimilarities`.
        margin: Float. Defaults to `5e-4`.
        context_weight: Float. Defaults to `1.0`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`.

    Example:

    >>> similarities = np.array([[[0.1, 0.9], [0.1, 0.4]]])
    >>> float(manifold_loss(np.array([0]), similarities, 0.0)[0])  # log(2)
    0.6931471805599453
    """
    similarities = ops.convert_to_tensor(similarities)
    proxies = similarities.shape[1]
    own = ops.one_hot(ops.mod(labels, proxies), proxies, dtype="bool")
    own = own[:, :, None]
    zero = ops.cast(0.0, similarities.dtype)
    to_own = ops.sum(ops.where(own, similarities, zero), axis=1, keepdims=True)
    excess = similarities - to_own + margin
    counts = ops.logical_and(ops.logical_not(own), excess >= 0.0)
    terms = log_one_plus_sum_exp(excess, counts, axis=1)
    return terms[:, 0] + context_weight * terms[:, 1]


@keras.saving.register_keras_serializable(package="keras_dml")
class Manifold(LogitsLoss):
    """Manifold similarity: N-pair loss on where random walks end.

    `L = l(F) + w l(C)` with
    `l(s) = log(1 + sum_p exp(s_ip - s_iq + m))`

    over the proxies `p` with `s_ip + m >= s_iq`, `q` being the proxy of row
    `i`. `F_ip` says how many of the random walks from row `i` end at proxy `p`,
    `C_ip` is the cosine of all ends of walks from `i` and from `p`. A proxy
    stands for a group of classes: those of one remainder of a division of their
    number by the number of proxies. It takes the output of
    `ManifoldSimilarities`.

    The paper draws the groups at random and joins several such embeddings into
    one; here the order of the classes groups them, for one embedding.

    Args:
        margin: Float, `m`. Defaults to `5e-4`.
        context_weight: Float of at least 0, `w`. Defaults to `1.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `margin` is not finite, `context_weight` is negative, or
            `y_pred` is not the output of `ManifoldSimilarities`.

    Example:

    ```python
    similarities = ManifoldSimilarities(num_proxies=50, name="proxies")
    model = keras.Model(images, similarities(embedding))
    model.compile("adam", loss=Manifold())
    ```

    Reference:
        Aziere and Todorovic, "Ensemble Deep Manifold Similarity Learning
        Using Hard Proxies", 2019.
    """

    takes = "manifold_similarities"
    takes_centers = True
    column_per_class = False

    def __init__(self, margin=5e-4, context_weight=1.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = finite_number("margin", margin)
        self.context_weight = not_negative("context_weight", context_weight)

    def logits_loss(self, labels, logits):
        if len(logits.shape) != 3 or logits.shape[2] != 2:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                "`ManifoldSimilarities`, of shape (batch, proxies, 2). "
                f"Received: y_pred.shape={tuple(logits.shape)}"
            )
        return manifold_loss(labels, logits, self.margin, self.context_weight)
