"""Normalized, temperature-scaled cross-entropy of pairs."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import ALL
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_sum_exp


def nt_xent_loss(logits, positive, negative, mean=ALL):
    """Averages `-log(exp(z_ip) / (exp(z_ip) + sum_{N_i} exp(z_ij)))`.

    Args:
        logits: Float tensor `(rows, columns)`, cosines divided by the
            temperature.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        mean: Function that averages terms, such as a `keras_dml.ops.Average`.
            Defaults to that of all positive pairs.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        positive pairs of all replicas. A pair whose row has no negative is
        zero.

    Example:

    >>> logits = np.zeros((1, 3))
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> float(nt_xent_loss(logits, positive, negative)[0])  # log(2)
    0.6931471805599453
    """
    against = log_sum_exp(logits, negative)[:, None]
    values = ops.softplus(against - logits)
    selected = ops.logical_and(positive, ops.any(negative, axis=1)[:, None])
    return mean(ops.where(selected, values, 0.0), positive)


@keras.saving.register_keras_serializable(package="keras_dml")
class NTXent(PairLoss):
    """Compares each positive pair with the negatives of its row.

    `L = mean_{i, p} -log(e_ip / (e_ip + sum_{j in N_i} e_ij))`

    with `e_ij = exp(s_ij / T)` and cosines `s`, over all positive pairs.
    Unlike in `SupCon`, other positives of the row are not in the denominator;
    with one positive for each row the two losses are equal.

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
    model.compile("adam", loss=NTXent(temperature=0.1))
    ```

    Reference:
        Chen et al., "A Simple Framework for Contrastive Learning of Visual
        Representations", 2020, equation 1.
    """

    def __init__(self, temperature=0.1, **kwargs):
        super().__init__(**kwargs)
        self.temperature = positive_number("temperature", temperature)

    def pair_loss(self, pairs: Pairs):
        logits = self.similarities(pairs) / self.temperature
        return nt_xent_loss(logits, *pairs.masks, self.mean(pairs))
