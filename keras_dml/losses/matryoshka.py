"""A loss on each of the prefixes of an embedding."""

import itertools

import keras

from keras_dml.checks import finite_number, positive_integer
from keras_dml.losses.base import Loss
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.wrapped import as_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class Matryoshka(Loss):
    """Adds a loss on every prefix of an embedding, so that each works alone.

    `L = sum_m c_m l(y, z_m)` for every row, before the reduction, with the
    loss `l`, and what it takes of the first `m` numbers of the embedding,
    `z_m`: these numbers for a loss on pairs, else the output of a head of
    their own. The reduction of `loss` itself is not used.

    Args:
        loss: Any loss, or its name; what it takes has two axes or more.
        widths: List of integers, the entries of each `z_m` along axis 1.
        weights: List of floats `c_m`, one for each width. Defaults to `None`,
            all `1.0`, as in the paper.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Call arguments:
        y_true: What `loss` takes.
        y_pred: Float tensor `(batch, sum(widths), ...)`, the `z_m` side by
            side.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If there is no width, `weights` has another length, a
            number is out of range, or `y_pred` has another width.

    Example:

    ```python
    prefixes = [embedding[:, :64], embedding[:, :128], embedding]
    model = keras.Model(image, keras.layers.Concatenate()(prefixes))
    model.compile("adam", Matryoshka(MultiSimilarity(), [64, 128, 512]))
    ```

    Reference:
        Kusupati et al., "Matryoshka Representation Learning", 2022,
        equation 1.
    """

    label_dtypes = PairLoss.label_dtypes
    labels_in_words = PairLoss.labels_in_words

    def __init__(self, loss, widths, weights=None, **kwargs):
        super().__init__(**kwargs)
        self.loss = as_loss(loss)
        self.widths = [positive_integer("widths", one) for one in widths]
        weights = [1.0] * len(self.widths) if weights is None else weights
        self.weights = [finite_number("weights", one) for one in weights]
        if not self.widths or len(self.weights) != len(self.widths):
            raise ValueError(
                "`widths` must hold at least one number and `weights` as many. "
                f"Received: widths={self.widths}, weights={self.weights}"
            )

    def call(self, y_true, y_pred):
        ends = list(itertools.accumulate(self.widths))
        if len(y_pred.shape) < 2 or y_pred.shape[1] not in (None, ends[-1]):
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must have {ends[-1]} "
                f"entries along axis 1, for `widths` are {self.widths}. "
                f"Received: y_pred.shape={tuple(y_pred.shape)}"
            )
        return sum(
            weight * self.loss.call(y_true, y_pred[:, end - width : end])
            for weight, width, end in zip(
                self.weights, self.widths, ends, strict=True
            )
        )
