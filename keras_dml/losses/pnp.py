"""Penalizes the negatives before each positive."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_dml.checks import one_of, optional, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs, sum_over_positives
from keras_dml.ops.reductions import count


class Penalty(NamedTuple):
    """How much a number of negatives before a positive costs.

    Attributes:
        value: Function of the number, and of the parameter.
        slope: Its derivative by the number.
    """

    value: Callable[[Any, float], Any]
    slope: Callable[[Any, float], Any]


PENALTIES = {
    "o": Penalty(lambda r, _: r, lambda r, _: ops.ones_like(r)),
    "iu": Penalty(
        lambda r, _: (1.0 + r) * ops.log1p(r), lambda r, _: 1.0 + ops.log1p(r)
    ),
    "ib": Penalty(
        lambda r, b: (b * r - ops.log1p(b * r)) / b**2,
        lambda r, b: r / (1.0 + b * r),
    ),
    "ds": Penalty(lambda r, _: ops.log1p(r), lambda r, _: 1.0 / (1.0 + r)),
    "dq": Penalty(
        lambda r, a: 1.0 - ops.power(1.0 + r, -a),
        lambda r, a: a * ops.power(1.0 + r, -a - 1.0),
    ),
}
# The parameter of those that have one.
PARAMETERS = {"ib": 2.0, "dq": 1.0}


def pnp_loss(
    similarity,
    positive,
    negative,
    penalty="o",
    parameter=None,
    temperature=0.01,
):
    """Averages the penalties of the positives of every row, see `PNP`.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row. Only first derivatives are correct.

    Args:
        similarity: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        penalty: String, see `PNP`. Defaults to `"o"`.
        parameter: Float or `None`, see `PNP`. Defaults to `None`.
        temperature: Float. Defaults to `0.01`.

    Returns:
        Tensor `(rows,)`; zero for a row without a positive.

    Example:

    >>> similarity = np.array([[0.5, 0.5]])  # half a negative before
    >>> first, second = np.array([[True, False]]), np.array([[False, True]])
    >>> float(pnp_loss(similarity, first, second)[0])
    0.5
    >>> float(pnp_loss(similarity, first, second, penalty="dq")[0])  # 1 - 1/1.5
    0.33333333333333337
    """
    similarity = ops.convert_to_tensor(similarity)
    value, slope = PENALTIES[penalty]
    if parameter is None:
        parameter = PARAMETERS.get(penalty, 0.0)
    dtype = similarity.dtype
    fixed = ops.stop_gradient(similarity)
    share = 1.0 / ops.maximum(count(positive, dtype), 1.0)[:, None]
    against = ops.cast(negative, dtype)

    def term(own, there, itself):
        weight = ops.where(there, share, 0.0)
        before = against * ops.sigmoid((fixed - own) / temperature)
        number = ops.sum(before, axis=1, keepdims=True)
        by_difference = (
            weight
            * slope(number, parameter)
            * before
            * (1.0 - before)
            / temperature
        )
        return (weight * value(number, parameter))[:, 0], by_difference

    return sum_over_positives(similarity, positive, term)


@keras.saving.register_keras_serializable(package="keras_dml")
class PNP(PairLoss):
    """Penalizes the negatives that come before each positive.

    `L_i = mean_{p in P_i} f(R_ip)`, `R_ip = sum_{N_i} sigmoid((s_in - s_ip)/T)`

    with cosines `s`, the other rows `P_i` of the class of row `i`, the rows
    `N_i` of other classes and the temperature `T`. The penalty `f` says which
    ranks are worth mending:

    - `"o"`: `R`, every negative alike.
    - `"iu"`: `(1 + R) log(1 + R)`, steeper for many negatives, without bound.
    - `"ib"`: `(b R - log(1 + b R)) / b^2`, steeper for many, with a bound.
    - `"ds"`: `log(1 + R)`, steep for the first negatives only.
    - `"dq"`: `1 - (1 + R)^-a`, the steepest there; the authors' best.

    The loss is the mean over the rows of all replicas that have a positive.
    So every row has the same value, and sample weights scale the whole loss.

    Args:
        penalty: String. Defaults to `"dq"`.
        parameter: Positive float, `b` of `"ib"` or `a` of `"dq"`. Defaults to
            `None`, which means 2 for `"ib"` and 1 for `"dq"`.
        temperature: Positive float, `T`. Defaults to `0.01`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `penalty` is unknown or takes no `parameter`, or a
            number is not positive.

    Example:

    ```python
    model.compile("adam", loss=PNP(penalty="dq", parameter=4.0))
    ```

    Reference:
        Li et al., "Rethinking the Optimization of Average Precision: Only
        Penalizing Negative Instances before Positive Ones is Enough", 2022.
    """

    def __init__(
        self, penalty="dq", parameter=None, temperature=0.01, **kwargs
    ):
        super().__init__(**kwargs)
        self.penalty = one_of("penalty", penalty, PENALTIES)
        if parameter is not None and penalty not in PARAMETERS:
            raise ValueError(
                f"`parameter` belongs to `penalty` {' and '.join(PARAMETERS)} "
                f"only. Received: penalty={penalty!r}, parameter={parameter!r}."
                " Leave it out."
            )
        self.parameter = optional(positive_number, "parameter", parameter)
        self.temperature = positive_number("temperature", temperature)

    def pair_loss(self, pairs: Pairs):
        values = pnp_loss(
            self.similarities(pairs),
            *pairs.masks,
            penalty=self.penalty,
            parameter=self.parameter,
            temperature=self.temperature,
        )
        return self.mean(pairs)(values, ops.any(pairs.positive, axis=1))
