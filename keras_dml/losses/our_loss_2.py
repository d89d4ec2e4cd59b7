"""Pulls embeddings to their class proxy and pushes proxies apart.

The rows of the batch weigh the repulsion of two proxies.
"""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import finite_number, one_of, positive_number
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.our_loss_1 import our_loss_1_loss
from keras_dml.ops.similarities import mutual_repulsion

REDUCTIONS = ("sum", "mean")


def our_loss_2_loss(
    labels, similarities, scale=32.0, margin=0.1, reduction_over_batch="sum"
):
    """Adds to `our_loss_1_loss` the repulsion of proxies through the batch.

    Two proxies repel each other by the similarity `sum_i s_ic s_ik`, a sum
    over the rows of all replicas.

    Args:
        labels: Integer tensor `(batch,)`, values from 0 to `classes - 1`.
        similarities: Float tensor `(batch, classes)` of cosines.
        scale: Float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        reduction_over_batch: `"sum"` or `"mean"`, how to reduce the products
            over the rows. Defaults to `"sum"`.

    Returns:
        Tensor `(batch,)` of the dtype of `similarities`, the same value in
        every entry.

    Example:

    >>> similarities = np.array([[0.1, 0.0]])
    >>> value = our_loss_2_loss(np.array([0]), similarities, margin=0.1)
    >>> float(value[0])  # log(1 + 1) + log(1 + exp(3.2))
    3.93310051...
    """
    one_of("reduction_over_batch", reduction_over_batch, REDUCTIONS)
    similarities = ops.convert_to_tensor(similarities)
    rows = distribute.all_gather(similarities)
    if reduction_over_batch == "mean":
        count = ops.cast(ops.shape(rows)[0], rows.dtype)
        rows = rows * ops.rsqrt(count)
    repulsion = mutual_repulsion(ops.transpose(rows), scale, margin)
    return our_loss_1_loss(labels, similarities, scale, margin) + repulsion


@keras.saving.register_keras_serializable(package="keras_dml")
class OurLoss2(LogitsLoss):
    """OurLoss2 of the thesis deck: compares proxies through the batch.

    `L = 1/|C+| sum_{c in C+} log(1 + sum_{i: y_i = c} exp(-a (s_ic - d)))`
    `+ 1/C sum_c log(1 + sum_{k != c} exp(a (sum_i s_ic s_ik + d)))`

    with the cosine `s_ic` of row `i` and the proxy of class `c`, the scale
    `a` and the margin `d`. It takes the output of `Proxies(metric="cosine")`
    without `ScaledLogits`. The second term as written overflows for
    embeddings that are not centered; the loss computes it as a log-sum-exp.
    It grows with the size of the batch, unless `reduction_over_batch="mean"`.

    Time grows with the square of the number of classes. As in `ProxyAnchor`,
    every row has the value of the batch.

    Args:
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        reduction_over_batch: `"sum"` or `"mean"`, how to reduce the products
            over the rows. Defaults to `"sum"`, as in the deck.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    ```python
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    model = keras.Model(images, similarity)
    model.compile("adam", loss=OurLoss2())
    ```

    Reference:
        Psomas, "Metric Learning: a Deep Dive", OurLoss2.
    """

    takes = "similarities"

    def __init__(
        self, scale=32.0, margin=0.1, reduction_over_batch="sum", **kwargs
    ):
        super().__init__(**kwargs)
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)
        self.reduction_over_batch = one_of(
            "reduction_over_batch", reduction_over_batch, REDUCTIONS
        )

    def logits_loss(self, labels, logits):
        return our_loss_2_loss(
            labels, logits, self.scale, self.margin, self.reduction_over_batch
        )
