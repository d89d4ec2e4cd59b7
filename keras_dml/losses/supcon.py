"""Supervised contrastive loss."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_sum_exp, masked_mean


def supcon_loss(logits, positive, negative):
    """Computes `log sum_{P_i and N_i} exp(z_ij) - mean_{P_i} z_ij` per row.

    Args:
        logits: Float tensor `(rows, columns)`, cosines divided by the
            temperature.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.

    Returns:
        Tensor `(rows,)` of the dtype of `logits`; zero for a row without a
        positive.

    Example:

    >>> logits = np.zeros((1, 5))
    >>> positive = np.array([[False, True, True, False, False]])
    >>> negative = np.array([[False, False, False, True, True]])
    >>> float(supcon_loss(logits, positive, negative)[0])  # log(4)
    1.3862943611198906
    """
    everyone = log_sum_exp(logits, ops.logical_or(positive, negative))
    values = everyone - masked_mean(logits, positive)
    return ops.where(ops.any(positive, axis=1), values, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class SupCon(PairLoss):
    """SupCon: compares each positive of a row with all other rows.

    `L = mean_i mean_{p in P_i} -log(e_ip / sum_{j != i} e_ij)`

    with `e_ij = exp(s_ij / T)` and cosines `s`, over the rows `i` that have a
    positive. If the two views of each image form a class, this is NT-Xent,
    the loss of SimCLR; `NTXent` extends that to several positives in another
    way.

    The mean is over the batch of all replicas. So every row has the same
    value, and sample weights scale the whole loss.

    Args:
        temperature: Positive float, `T`. Defaults to `0.1`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `temperature` is not positive.

    Example:

    ```python
    model.compile("adam", loss=SupCon(temperature=0.1))
    ```

    Reference:
        Khosla et al., "Supervised Contrastive Learning", 2020, equation 2.
    """

    def __init__(self, temperature=0.1, **kwargs):
        super().__init__(**kwargs)
        self.temperature = positive_number("temperature", temperature)

    def pair_loss(self, pairs: Pairs):
        logits = self.similarities(pairs) / self.temperature
        values = supcon_loss(logits, *pairs.masks)
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))
