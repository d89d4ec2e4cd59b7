"""The circle loss of Keras, computed over all replicas."""

import keras
from keras import ops

from keras_dml.checks import boolean, finite_number, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs, rows_with_both
from keras_dml.ops.reductions import log_sum_exp


def circle_loss(
    similarity,
    positive,
    negative,
    gamma=80.0,
    margin=0.4,
    constant_weights=False,
):
    """Computes the circle loss of every row, see `Circle`.

    Args:
        similarity: Float tensor `(rows, columns)`, the cosines.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        gamma: Float. Defaults to `80.0`.
        margin: Float. Defaults to `0.4`.
        constant_weights: Boolean, see `Circle`. Defaults to `False`.

    Returns:
        Tensor `(rows,)`; zero for a row without a positive or a negative.

    Example:

    >>> similarity = np.array([[0.9, 0.1]], "float32")
    >>> positive = np.array([[True, False]])
    >>> float(circle_loss(similarity, positive, ~positive)[0]) < 1e-3
    True
    """
    distance = ops.maximum(1.0 - similarity, 0.0)
    pull_weight = ops.relu(margin + distance)
    push_weight = ops.relu(1.0 + margin - distance)
    if constant_weights:
        pull_weight = ops.stop_gradient(pull_weight)
        push_weight = ops.stop_gradient(push_weight)
    pull = gamma * pull_weight * (distance - margin)
    push = gamma * push_weight * (1.0 - margin - distance)
    values = ops.softplus(
        log_sum_exp(pull, positive) + log_sum_exp(push, negative)
    )
    return ops.where(rows_with_both(positive, negative), values, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class Circle(PairLoss):
    """`keras.losses.Circle`, with the rows of all replicas as references.

    `L_i = log(1 + sum_{P_i} exp(g [m + d_ij]_+ (d_ij - m))`
    `* sum_{N_i} exp(g [1 + m - d_ij]_+ (1 - m - d_ij)))` with `d = 1 - s`.

    The loss is the mean over the rows whose value is not zero, as in Keras. On
    one device it equals the loss of Keras for unit embeddings. On several,
    Keras compares the rows of each replica only with each other.

    In the gradient of the paper, equation 10, the weights `[m + d_ij]_+` and
    `[1 + m - d_ij]_+` are constants: every negative with `s > -m` is pushed
    away. Keras differentiates the weights as well, which pulls negatives with
    `-m < s < 0` closer. `constant_weights=True` is the gradient of the paper.

    Args:
        gamma: Positive float, `g`. Defaults to `80.0`.
        margin: Float, `m`. Defaults to `0.4`.
        constant_weights: Boolean, whether the weights have no gradient, as in
            the paper. Defaults to `False`, as in Keras.
        **kwargs: `normalize`, `miner`, `average`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `gamma` is not positive, `margin` not finite or
            `constant_weights` not a boolean.

    Example:

    ```python
    model.compile("adam", loss=Circle())
    ```

    Reference:
        Sun et al., "Circle Loss: A Unified Perspective of Pair Similarity
        Optimization", 2020, equations 6 and 10.
    """

    takes_any_metric = False
    usual_average = "non_zero"

    def __init__(
        self, gamma=80.0, margin=0.4, constant_weights=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.gamma = positive_number("gamma", gamma)
        self.margin = finite_number("margin", margin)
        self.constant_weights = boolean("constant_weights", constant_weights)

    def pair_loss(self, pairs: Pairs):
        values = circle_loss(
            self.similarities(pairs),
            *pairs.masks,
            gamma=self.gamma,
            margin=self.margin,
            constant_weights=self.constant_weights,
        )
        return self.mean(pairs)(values)
