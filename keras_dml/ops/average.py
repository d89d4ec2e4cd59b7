"""How the terms of a loss become one number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops

from keras_dml.checks import (
    boolean,
    finite_number,
    not_negative,
    one_of,
    optional,
    require,
)
from keras_dml.ops.labels import among_classes, within_classes
from keras_dml.ops.reductions import batch_mean, count, masked_mean, masked_sum


@dataclass(frozen=True)
class Average:
    """Averages the terms of a loss over the batch of all replicas.

    `L = sum_i w_i l_i / n` over the `n` terms with `low < l_i < high`; zero if
    there are none. A term is a pair, a triplet or a row.

    Args:
        low: Float, the bound that terms must exceed to count; with `0.0` the
            average is over the terms that are not zero. Defaults to `None`.
        high: Float, the bound that terms must stay below. Defaults to `None`.
        per_anchor: Boolean, whether to average the terms of each row first,
            so that the means of the rows are the terms. Defaults to `False`.
        class_weights: List of floats, `w` of each class, for the class of the
            anchor; see `balanced_class_weights`. Defaults to `None`, all 1.

    Call arguments:
        values: Float tensor `(rows, columns)` or `(rows,)`, the terms.
        mask: Boolean tensor of the same shape, which of them there are.
            Defaults to `None`, all.
        labels: Integer tensor `(rows,)`, the classes of the rows, for
            `class_weights`. Defaults to `None`.

    Returns:
        Tensor `(rows,)`, the same value in every entry; NaN for labels without
        a weight on an accelerator and under XLA, where nothing can raise.

    Raises:
        ValueError: If a bound is not finite, a weight is negative, or a label
            has no weight.

    Example:

    >>> values = np.array([[0.0, 0.5, 0.1]])
    >>> float(Average(low=0.2)(values)[0])
    0.5
    """

    low: float | None = None
    high: float | None = None
    per_anchor: bool = False
    class_weights: Sequence[float] | None = None

    def __post_init__(self):
        optional(finite_number, "low", self.low)
        optional(finite_number, "high", self.high)
        boolean("per_anchor", self.per_anchor)
        weights: Any = self.class_weights
        if weights is None:
            return
        require(
            isinstance(weights, list | tuple | np.ndarray),
            "class_weights",
            "None or a list of numbers, one for each class",
            weights,
        )
        # A list of floats, as JSON returns it.
        weights = [not_negative("class_weights", one) for one in weights]
        object.__setattr__(self, "class_weights", weights)

    def __call__(self, values, mask=None, labels=None):
        if mask is None:
            mask = ops.ones_like(values, dtype="bool")
        if self.per_anchor and len(values.shape) == 2:
            values, mask = masked_mean(values, mask), ops.any(mask, axis=1)
        mask = ops.logical_and(mask, self._within(values))
        if len(values.shape) == 2:
            totals, number = masked_sum(values, mask), count(mask, values.dtype)
            return self._mean(totals, number, labels)
        return self._mean(ops.where(mask, values, 0.0), mask, labels)

    def counts(self, values):
        """Returns which terms count: boolean, of the shape of `values`."""
        if self.per_anchor:
            return ops.ones_like(values, dtype="bool")
        return self._within(values)

    def of_sums(self, totals, number, labels=None):
        """Averages terms that are summed up by row already.

        Args:
            totals: Float tensor `(rows,)`, the sums of the terms that count.
            number: Float tensor `(rows,)`, how many these are.
            labels: As in the call.
        """
        if self.per_anchor:
            return self(ops.divide_no_nan(totals, number), number > 0, labels)
        return self._mean(totals, number, labels)

    def _within(self, values):
        low, high = self.low, self.high
        if low is None and high is None:
            return ops.ones_like(values, dtype="bool")
        if high is None:
            return values > low
        below = values < high
        return below if low is None else ops.logical_and(values > low, below)

    def _mean(self, totals, number, labels):
        if self.class_weights is not None:
            require(
                labels is not None,
                "class_weights",
                "None where a matrix of pairs stands for the labels",
                self.class_weights,
            )
            classes = len(self.class_weights)
            labels = within_classes(
                labels,
                classes,
                f"Labels must lie between 0 and {classes - 1}, for "
                f"`class_weights` holds {classes} numbers",
                "Give `class_weights` a number for each class.",
            )
            weights = ops.cast(self.class_weights, totals.dtype)
            weights = ops.where(
                among_classes(labels, classes),
                ops.take(weights, labels),
                float("nan"),
            )
            totals = totals * weights
        return batch_mean(totals, number)


ALL, NON_ZERO = Average(), Average(low=0.0)


def as_average(value) -> Average:
    """Returns the `Average` that an argument of a loss names.

    Args:
        value: `"all"`, `"non_zero"`, a dict of the arguments of `Average`, or
            an `Average`.

    Raises:
        UsageError: If it is none of them.

    Example:

    >>> as_average({"low": 0.1}).low
    0.1
    """
    if isinstance(value, Average):
        return value
    if not isinstance(value, dict):
        one_of("average", value, ("all", "non_zero"))
        return ALL if value == "all" else NON_ZERO
    known = list(Average.__dataclass_fields__)
    require(
        set(value) <= set(known),
        "average",
        f"'all', 'non_zero' or a dict of {', '.join(known)}",
        value,
    )
    return Average(**value)


def balanced_class_weights(labels) -> list[float]:
    """Returns weights with which all classes of a data set weigh the same.

    `w_c = n / (C n_c)` with the `n_c` rows of class `c` among all `n` rows of
    `C` classes; zero for a class without rows.

    Args:
        labels: Integer array `(n,)`, values from 0 on.

    Example:

    >>> balanced_class_weights(np.array([0, 0, 0, 1]))
    [0.6666666666666666, 2.0]
    """
    counts = np.bincount(np.asarray(labels))
    present = np.maximum(counts, 1) * np.count_nonzero(counts)
    return np.where(counts > 0, len(labels) / present, 0.0).tolist()
