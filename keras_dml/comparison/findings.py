"""Checks the claims of papers on the runs of a plan."""

import dataclasses
import math
from collections.abc import Iterable
from itertools import product

import numpy as np

from keras_dml.comparison.per_query import DIGITS, mean_over_runs, same_queries
from keras_dml.comparison.records import (
    Experiment,
    RunRecord,
    by_arm,
    experiment_of,
    grouped,
)
from keras_dml.comparison.summary import (
    Repetitions,
    Summary,
    metric_of,
    paired_repetitions,
    summarize,
)
from keras_dml.config.plan_sections import FindingConfig
from keras_dml.errors import UsageError
from keras_dml.evaluation import Difference, paired_bootstrap
from keras_dml.wording import counted, listed, metric_title

CONFIRMED, CONTRADICTED = "confirmed", "contradicted"
OPEN, NOT_MEASURED = "open", "not measured"
# How both ends of an interval of differences are formatted.
BOUNDS = "{:+.3f} to {:+.3f}"


@dataclasses.dataclass(frozen=True)
class FindingResult:
    """The outcome of a claim in one experiment.

    Args:
        finding: The claim with its metric; for a pair, only the arms of it.
        experiment: `Experiment`, or `None` if no run has any of the arms.
        difference: Float, the mean of `better` minus the mean of `than`; NaN
            if it was not measured. With pairs, the difference of the pair
            that supports the claim least.
        seeds: `Summary` of the differences under the same seeds, or `None`
            with one repetition.
        queries: `Difference` with the bootstrap interval over test classes,
            or `None` without comparable values of single queries.
        verdict: `"confirmed"` where both intervals lie above zero,
            `"contradicted"` where both lie below, `"not measured"` where arms
            are missing, else `"open"`. Where one interval is `None`, the other
            decides alone, and `notes` says so.
        notes: Tuple of remarks.
        pairs: Tuple of `FindingResult`, one for each pair of arms, if the
            claim must hold for every pair. Defaults to `()`.
    """

    finding: FindingConfig
    experiment: Experiment | None
    difference: float = math.nan
    seeds: Summary | None = None
    queries: Difference | None = None
    verdict: str = NOT_MEASURED
    notes: tuple[str, ...] = ()
    pairs: tuple["FindingResult", ...] = ()

    @property
    def sentence(self) -> str:
        """The result in words."""
        where = f" ({self.experiment.title})" if self.experiment else ""
        parts = []
        if not math.isnan(self.difference):
            metric = metric_title(self.finding.metric or "")
            parts.append(f"{self.difference:+.3f} {metric}")
            if self.seeds is not None:
                parts.append(f"{self.seeds.unit} {bounds(self.seeds)}")
            if self.queries is not None:
                parts.append(f"classes {bounds(self.queries)}")
        text = f"{self.finding.claim}{where}: "
        text += f"{', '.join(parts)}: " if parts else ""
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{text}{self.verdict}{notes}"


def check_findings(
    findings: Iterable[FindingConfig],
    records: Iterable[RunRecord],
    metric: str = "map@r",
) -> list[FindingResult]:
    """Checks each claim in every experiment that has one of its arms.

    Args:
        findings: The claims.
        records: Runs of any state.
        metric: The metric of claims that name none. Defaults to `"map@r"`.
    """
    experiments = grouped(records, experiment_of)
    results = []
    for finding in findings:
        names = {*finding.better, *finding.than}
        having = [
            runs
            for experiment, runs in experiments.items()
            if finding.covers(experiment.source, experiment.backbone)
            and names & {run.arm for run in runs}
        ]
        results += [
            check_finding(finding, runs, metric) for runs in having or [[]]
        ]
    return results


def check_finding(
    finding: FindingConfig, records: Iterable[RunRecord], metric: str = "map@r"
) -> FindingResult:
    """Checks a claim in one experiment.

    Compares the arms twice. Over seeds: Student's t interval of the
    differences under the same seeds; folds of a seed are averaged first. Over
    classes: an interval of the differences on the same queries, averaged over
    runs, by a bootstrap that draws test classes.

    With `each`, the claim is contradicted if one pair contradicts it, and
    confirmed if all pairs confirm it. The intervals of pairs are not widened
    for the number of pairs.

    Args:
        finding: The claim.
        records: Runs of any state, of one experiment.
        metric: The metric if the claim names none. Defaults to `"map@r"`.

    Raises:
        ValueError: If the runs are of several experiments.
    """
    records = list(records)
    experiments = {experiment_of(record) for record in records}
    if len(experiments) > 1:
        raise ValueError(
            "`records` must be of one experiment. Received: "
            f"{listed(sorted(one.title for one in experiments))}. "
            "`check_findings` takes them all."
        )
    finding = finding.changed(metric=finding.metric or metric)
    if finding.each and len(finding.better) * len(finding.than) > 1:
        return _every_pair(finding, records)
    return _compared(finding, records)


def _every_pair(
    finding: FindingConfig, records: list[RunRecord]
) -> FindingResult:
    pairs = tuple(
        _compared(finding.changed(better=[first], than=[second]), records)
        for first, second in product(finding.better, finding.than)
    )
    verdicts = [pair.verdict for pair in pairs]
    measured = [pair for pair in pairs if not math.isnan(pair.difference)]
    order = (CONTRADICTED, NOT_MEASURED, OPEN, CONFIRMED)
    worst = min(measured or pairs, key=lambda pair: pair.difference)
    notes = [
        f"{verdicts.count(CONFIRMED)} of {counted(len(pairs), 'pair')} "
        "confirmed"
    ]
    if measured:
        notes.append(
            f"the figures are of `{worst.finding.better[0]}` against "
            f"`{worst.finding.than[0]}`, the pair least in favor"
        )
    notes += dict.fromkeys(note for pair in pairs for note in pair.notes)
    return dataclasses.replace(
        worst,
        finding=finding,
        verdict=min(verdicts, key=order.index),
        notes=tuple(notes),
        pairs=pairs,
    )


def _compared(
    finding: FindingConfig, records: list[RunRecord]
) -> FindingResult:
    metric, runs = finding.metric or "", by_arm(records)
    experiment = experiment_of(records[0]) if records else None
    names = list(dict.fromkeys([*finding.better, *finding.than]))
    arms = {arm: runs.get(arm, []) for arm in names}
    found = paired_repetitions(arms, metric)
    if not found.pairs:
        return FindingResult(finding, experiment, notes=_missing(arms, metric))
    better = found.values[:, [names.index(arm) for arm in finding.better]]
    than = found.values[:, [names.index(arm) for arm in finding.than]]
    # Remove rounding errors, so that equal arms do not differ.
    apart = np.round(better.mean(axis=1) - than.mean(axis=1), DIGITS)
    summary = summarize(apart, unit=found.unit, folds=found.folds)
    seeds = summary if summary.count > 1 else None
    queries = None
    notes = _left_out(found, arms)
    if any(run.oracle for own in arms.values() for run in own):
        notes.append("oracle: epochs were chosen on the test classes")
    if seeds is None:
        notes.append("one seed: nothing is known of other seeds")
    try:
        queries = _queries(finding, found, arms)
    except UsageError as error:
        notes.append(f"no interval over classes, because {error}")
    return FindingResult(
        finding,
        experiment,
        summary.mean,
        seeds,
        queries,
        _verdict(seeds, queries),
        tuple(notes),
    )


def bounds(interval: Summary | Difference | None) -> str:
    """Returns both ends of an interval as text, or a dash for `None`."""
    return BOUNDS.format(interval.low, interval.high) if interval else "-"


def _verdict(seeds: Summary | None, queries: Difference | None) -> str:
    intervals = [one for one in (seeds, queries) if one is not None]
    if intervals and all(interval.low > 0 for interval in intervals):
        return CONFIRMED
    if intervals and all(interval.high < 0 for interval in intervals):
        return CONTRADICTED
    return OPEN


def _queries(
    finding: FindingConfig, found: Repetitions, arms: dict[str, list[RunRecord]]
) -> Difference:
    """Returns the interval over test classes; raises if values are missing."""
    first, second = (
        mean_over_runs(
            [
                run
                for arm in names
                for run in arms[arm]
                if run.status == "done" and (run.seed, run.fold) in found.pairs
            ],
            finding.metric or "",
        )
        for names in (finding.better, finding.than)
    )
    if not same_queries(first, second):
        raise UsageError("the arms were measured on different queries")
    return paired_bootstrap(first.values, second.values, first.labels)


def _missing(arms: dict[str, list[RunRecord]], metric: str) -> tuple[str, ...]:
    """Returns the reasons why no seed was finished by all arms."""
    notes = []
    for arm, runs in arms.items():
        if any(metric_of(run, metric) is not None for run in runs):
            continue
        states = [run.status for run in runs]
        if not runs:
            notes.append(f"`{arm}` is not among the runs")
        elif "done" in states:
            notes.append(f"`{arm}` has no {metric}")
        elif "failed" in states:
            runs_in_words = counted(states.count("failed"), "run")
            notes.append(f"`{arm}` failed in {runs_in_words}")
        else:
            notes.append(f"`{arm}` has no finished run yet")
    return tuple(notes) or ("the arms finished no seed in common",)


def _left_out(
    found: Repetitions, arms: dict[str, list[RunRecord]]
) -> list[str]:
    """Notes how many seeds or folds were not finished by all arms."""
    planned = {(run.seed, run.fold) for runs in arms.values() for run in runs}
    missed = len(planned) - len(found.pairs)
    if not missed:
        return []
    noun = "seeds" if found.unit == "seeds" and not found.folds else "folds"
    return [f"{missed} of {len(planned)} {noun} left out, not finished by all"]
