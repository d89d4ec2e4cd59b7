"""The arms of each experiment, best first, and how far behind the best."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_dml.comparison.findings import FindingResult, bounds, check_finding
from keras_dml.comparison.records import (
    Experiment,
    RunRecord,
    experiment_of,
    grouped,
)
from keras_dml.comparison.summary import Summary, summarize_arms
from keras_dml.config.plan_sections import FindingConfig
from keras_dml.wording import listed, metric_title

# Shown if a plan names no metrics.
METRICS = ("recall@1", "map@r")


def ranked_by(metrics: Sequence[str]) -> str:
    """Returns the metric that ranks arms: MAP@R if it is among them.

    >>> ranked_by(["recall@1", "map@r"]), ranked_by(["nmi"])
    ('map@r', 'nmi')
    """
    return "map@r" if "map@r" in (metrics or METRICS) else metrics[0]


@dataclasses.dataclass(frozen=True)
class Standing:
    """The place of an arm in an experiment.

    Args:
        arm: Its name.
        summaries: Dict from each metric that it has to its `Summary`.
        gap: `FindingResult` of the claim that it is better than the best, of
            paired differences with intervals; `None` for the best arm.
    """

    arm: str
    summaries: Mapping[str, Summary]
    gap: FindingResult | None = None

    @property
    def verdict(self) -> str:
        """`"best"`, `"worse"`, or `"open"` if the intervals do not tell.

        `"better"` where an arm leads by seeds that this one did not finish,
        and `"not measured"` where they finished none together.
        """
        if self.gap is None:
            return "best"
        words = {"contradicted": "worse", "confirmed": "better"}
        return words.get(self.gap.verdict, self.gap.verdict)


def standings(
    records: Iterable[RunRecord], metrics: Sequence[str], metric: str
) -> dict[Experiment, list[Standing]]:
    """Ranks the arms of each experiment, and compares each with the best.

    Args:
        records: Runs of any state.
        metrics: Names of the metrics to summarize.
        metric: Name of the metric that ranks the arms, one of `metrics`.

    Returns:
        Dict from each experiment with a finished run to its arms, best first.
    """
    records = list(records)
    experiments = grouped(records, experiment_of)
    by_metric = {name: summarize_arms(records, name) for name in metrics}
    found = {}
    for experiment, runs in experiments.items():
        means = by_metric[metric][experiment]
        order = sorted(means, key=lambda arm: -means[arm].mean)
        found[experiment] = [
            Standing(
                arm,
                {
                    name: own[experiment][arm]
                    for name, own in by_metric.items()
                    if arm in own[experiment]
                },
                _gap(runs, arm, order[0], metric),
            )
            for arm in order
        ]
    return {experiment: arms for experiment, arms in found.items() if arms}


def ranking_rows(
    arms: Sequence[Standing], metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns the rows of a table of means with their deviations."""
    return [
        {
            "arm": one.arm,
            **{
                metric_title(name): _mean(one.summaries.get(name))
                for name in metrics
            },
            "runs": str(max(own.count for own in one.summaries.values())),
        }
        for one in arms
    ]


def gap_rows(arms: Sequence[Standing]) -> list[dict[str, Any]]:
    """Returns the rows of a table of paired differences from the best arm.

    It leaves out intervals that no arm has.
    """
    gaps = [(one, one.gap) for one in arms if one.gap is not None]
    repeated = [gap.seeds for _, gap in gaps if gap.seeds is not None]
    units = {one.unit for one in repeated} or {"seeds"}
    seeds = f"interval: {'/'.join(sorted(units))}"
    classes = "interval: classes"
    rows = [
        {
            "arm": one.arm,
            "gap": gap_in_words(gap),
            seeds: bounds(gap.seeds),
            classes: bounds(gap.queries),
            "verdict": one.verdict,
        }
        for one, gap in gaps
    ]
    empty = {
        key for key in (seeds, classes) if all(row[key] == "-" for row in rows)
    }
    return [
        {key: value for key, value in row.items() if key not in empty}
        for row in rows
    ]


def gap_in_words(gap: FindingResult) -> str:
    """Returns a gap with its sign, or a dash if no seed is shared."""
    return "-" if math.isnan(gap.difference) else f"{gap.difference:+.3f}"


def conclusions(
    found: Mapping[Experiment, Sequence[Standing]], name: str
) -> list[str]:
    """Says of each experiment which arm is best, and how surely.

    Args:
        found: The arms of each experiment, best first.
        name: The name of the metric that ranks them, in words.
    """
    titled = {
        # Without the marks of Markdown.
        f"{experiment.title.replace('`', '')}: " if len(found) > 1 else "": arms
        for experiment, arms in found.items()
    }
    return [
        title + said
        for title, arms in titled.items()
        if (said := conclusion(arms, name))
    ]


def conclusion(arms: Sequence[Standing], name: str) -> str:
    """Says in a sentence or two which arm is best, and how surely.

    Args:
        arms: The arms of an experiment, best first.
        name: The name of the metric that ranks them, in words.

    Returns:
        String; empty where there is nothing to compare.
    """
    if len(arms) < 2:
        return ""
    best, *others = arms
    by_verdict: dict[str, list[str]] = {}
    for one in others:
        by_verdict.setdefault(one.verdict, []).append(one.arm)
    worse = by_verdict.pop("worse", [])
    better = by_verdict.pop("better", [])
    left = [arm for arms in by_verdict.values() for arm in arms]
    if not left and not better:
        said = f"{best.arm} is best by {name}: {_names(worse)} worse."
    else:
        said = f"{best.arm} leads by {name}"
        if worse:
            said += f", {_names(worse)} worse"
        if left:
            said += f"; whether it is better than {listed(left)} is open"
        said += "."
    if better:
        said += f" On the seeds that both finished, {_names(better)} better."
    if _trained_once(arms):
        said += " Each was trained once: other seeds may rank them otherwise."
    return said


def needs_seeds(arms: Sequence[Standing]) -> bool:
    """Returns whether other seeds might change which arm is best."""
    repeated = [one.gap.seeds for one in arms if one.gap and one.gap.seeds]
    return _trained_once(arms) or any(gap.high >= 0 for gap in repeated)


def _trained_once(arms: Sequence[Standing]) -> bool:
    counts = [own.count for one in arms for own in one.summaries.values()]
    return max(counts) == 1


def _names(arms: Sequence[str]) -> str:
    return f"{listed(arms)} {'is' if len(arms) == 1 else 'are'}"


def _mean(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    spread = "" if math.isnan(summary.std) else f" ± {summary.std:.3f}"
    return f"{summary.mean:.3f}{spread}"


def _gap(
    runs: Sequence[RunRecord], arm: str, best: str, metric: str
) -> FindingResult | None:
    if arm == best:
        return None
    claim = FindingConfig(
        claim=f"{arm} is better than {best}", better=[arm], than=[best]
    )
    return check_finding(claim, runs, metric)
