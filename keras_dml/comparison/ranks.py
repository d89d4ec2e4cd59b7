"""Ranks of arms over experiments, and which differences are significant."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from keras_dml import checks
from keras_dml.comparison.records import (
    RunRecord,
    by_arm,
    experiment_of,
    grouped,
    trained_runs,
)
from keras_dml.comparison.summary import (
    LEVEL,
    paired_repetitions,
    summarize_arms,
)


@dataclasses.dataclass(frozen=True)
class RankTable:
    """Ranks of arms, best first; rank 1 is the best.

    Args:
        arms: Tuple of names, the best average rank first.
        total: Float array `(arms,)`, sum of the ranks.
        mean: Float array `(arms,)`, average rank.
        std: Float array `(arms,)`, sample standard deviation of the ranks
            (`ddof=1`); NaN with one block.
        num_blocks: Integer, how often the arms were ranked.
        unit: What the blocks are, `"experiments"`, `"seeds"` or `"folds"`.
        friedman_p: Float, the probability that equal arms differ this much;
            NaN with one block.
        critical_difference: Float, the critical difference of Nemenyi's test;
            NaN with one block.
        blocks_left_out: Integer, the number of experiments, seeds or folds
            that some arm did not finish.
        arms_left_out: Tuple of arms that share too few experiments with the
            others, or have no finished run.
    """

    arms: tuple[str, ...]
    total: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    num_blocks: int
    unit: str
    friedman_p: float
    critical_difference: float
    blocks_left_out: int = 0
    arms_left_out: tuple[str, ...] = ()

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The groups of arms that do not differ significantly.

        Each group is the first and the last position of its arms. If the
        Friedman test finds no difference at all, all arms are one group.
        """
        count = len(self.arms)
        if math.isnan(self.critical_difference):
            return []
        if self.friedman_p >= 1 - LEVEL:
            return [(0, count - 1)]
        groups: list[tuple[int, int]] = []
        for first in range(count):
            reach = self.mean[first] + self.critical_difference
            last = int(np.flatnonzero(self.mean < reach)[-1])
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
        return groups


def rank_arms(
    scores: Any,
    arms: Sequence[str] | None = None,
    unit: str = "experiments",
) -> RankTable:
    """Ranks arms in each block and averages the ranks.

    Equal scores share the average of their ranks. The Friedman test asks
    whether the arms differ at all; two arms differ where their average ranks
    are at least `q * sqrt(k (k + 1) / (6 N))` apart. Both tests assume that
    the blocks are independent; experiments on the same data are so only in
    part.

    Args:
        scores: Float array `(blocks, arms)`, higher is better.
        arms: Names. Defaults to `None`, the numbers of the columns.
        unit: What a block is. Defaults to `"experiments"`.

    Returns:
        `RankTable`, the best average rank first.

    Raises:
        ValueError: If `scores` is not a matrix of finite numbers with a name
            for each column.

    Example:

    >>> rank_arms([[0.9, 0.7], [0.8, 0.8]], ["a", "b"]).total
    array([2.5, 3.5])

    Reference:
        Demšar, "Statistical Comparisons of Classifiers over Multiple Data
        Sets", JMLR 2006, section 3.2.
    """
    scores = np.asarray(scores, np.float64)
    checks.of_shape("scores", scores, "blocks", "arms")
    finite = scores.size > 0 and bool(np.isfinite(scores).all())
    checks.require(finite, "scores", "finite numbers", scores.tolist())
    num_blocks, num_arms = scores.shape
    names = [*map(str, range(num_arms))] if arms is None else list(arms)
    named = len(names) == num_arms
    wanted = f"one name for each of the {num_arms} columns of `scores`"
    checks.require(named, "arms", wanted, names)
    ranks = stats.rankdata(-scores, axis=1)
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    p_value = difference = math.nan
    std = np.full(num_arms, math.nan)
    if num_blocks > 1 and num_arms > 1:
        p_value = _friedman(scores)
        difference = critical_difference(num_arms, num_blocks)
    if num_blocks > 1:
        std = ranks.std(axis=0, ddof=1)
    return RankTable(
        tuple(names[i] for i in order),
        ranks.sum(axis=0)[order],
        mean[order],
        std[order],
        num_blocks,
        unit,
        p_value,
        difference,
    )


def critical_difference(num_arms: int, num_blocks: int) -> float:
    """Returns the critical difference of average ranks by Nemenyi's test.

    `q * sqrt(k (k + 1) / (6 N))`, with `q` the quantile of the studentized
    range of `k` arms divided by `sqrt(2)`.

    Example:

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    quantile = stats.studentized_range.ppf(LEVEL, num_arms, np.inf)
    spread = num_arms * (num_arms + 1) / (6 * num_blocks)
    return float(quantile / math.sqrt(2) * math.sqrt(spread))


def rank_records(records: Iterable[RunRecord], metric: str) -> RankTable | None:
    """Ranks arms by their mean in each experiment that all of them finished.

    Arms that are in few experiments, such as one of another embedding size, are
    left out where the others share more. With a single experiment its seeds
    are the blocks (or its folds, where there is one seed); the table's `unit`
    says which. Concatenated embeddings of folds are not ranked, because they
    come from the same trainings.

    Args:
        records: Runs of any state.
        metric: Name of a metric, higher is better.

    Returns:
        `RankTable`, or `None` if no two arms finished the same experiment.
    """
    records = trained_runs(records)
    means = summarize_arms(records, metric)
    arms = _sharing_most(means.values())
    if len(arms) < 2:
        return None
    shared = [one for one, found in means.items() if arms <= found.keys()]
    names = [arm for arm in by_arm(records) if arm in arms]
    if len(shared) > 1:
        unit, planned = "experiments", len(grouped(records, experiment_of))
        scores: Any = [
            [means[one][arm].mean for arm in names] for one in shared
        ]
    else:
        own = grouped(records, experiment_of)[shared[0]]
        runs = by_arm(own)
        paired = paired_repetitions({arm: runs[arm] for arm in names}, metric)
        unit, scores = paired.unit, paired.values
        planned = len({(run.seed, run.fold) for run in own})
        if unit == "seeds":
            planned = len({run.seed for run in own})
    if not len(scores):
        return None
    return dataclasses.replace(
        rank_arms(scores, names, unit),
        blocks_left_out=planned - len(scores),
        arms_left_out=tuple(arm for arm in by_arm(records) if arm not in arms),
    )


def _sharing_most(
    experiments: Iterable[Mapping[str, Any]],
) -> frozenset[str]:
    """Returns the arms of which the most results can be compared.

    They are two or more, or none.
    """
    found = [frozenset(experiment) for experiment in experiments]
    candidates = {a & b for a in found for b in found}
    sizes = {
        arms: (len(arms) * sum(arms <= one for one in found), len(arms))
        for arms in sorted(candidates, key=sorted)
        if len(arms) > 1
    }
    return max(sizes, key=sizes.__getitem__, default=frozenset())


def _friedman(scores: np.ndarray) -> float:
    """Returns the p-value of Friedman's test, corrected for ties."""
    if (scores == scores[:, :1]).all():
        # Without any difference SciPy divides by zero.
        return 1.0
    if scores.shape[1] == 2:
        # SciPy requires three arms; with two the test is the sign test.
        signs = np.sign(scores[:, 0] - scores[:, 1])
        statistic = float(signs.sum() ** 2 / np.abs(signs).sum())
        return float(stats.chi2.sf(statistic, 1))
    return float(stats.friedmanchisquare(*scores.T).pvalue)
