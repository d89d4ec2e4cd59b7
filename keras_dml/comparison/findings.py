"""Checks the claims of papers on the runs of a plan."""

import dataclasses
import math
from collections.abc import Iterable
from itertools import product

import numpy as np

from keras_dml.comparison.per_query import (
    DIGITS,
    mean_over_runs,
    same_queries,
)
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
from keras_dml.wording import (
    counted,
    listed,
    metric_title,
)

CONFIRMED, CONTRADICTED = "confirmed", "contradicted"
OPEN, NOT_MEASURED = "open", "not measured"


@dataclasses.dataclass(frozen=True)
class FindingResult:
    """The outcome of a claim in one experiment.

    Args:
        claim: The claim.
        experiment: `Experiment`, or `None` if no run has any of the arms.
        metric: Name of the metric.
        better: Tuple of the arms that the claim calls better.
        than: Tuple of the arms that they are compared with.
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

    claim: str
    experiment: Experiment | None
    metric: str
    better: tuple[str, ...]
    than: tuple[str, ...]
    difference: float
    seeds: Summary | None
    queries: Difference | None
    verdict: str
    notes: tuple[str, ...] = ()
    pairs: tuple["FindingResult", ...] = ()

    @property
    def sentence(self) -> str:
        """The result in words."""
        where = ""
        if self.experiment is not None:
            where = f" ({self.experiment.title})"
        text = f"{self.claim}{where}: "
        if not math.isnan(self.difference):
            text += f"{self.difference:+.3f} {metric_title(self.metric)}, "
            if self.seeds is not None:
                text += f"{self.seeds.unit} {bounds(self.seeds)}, "
            if self.queries is not None:
                text += f"classes {bounds(self.queries)}"
            text = text.removesuffix(", ") + ": "
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{text}{self.verdict}{notes}"


def bounds(interval: Summary | Difference) -> str:
    """Formats an interval of differences, with signs."""
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"


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
    finding: FindingConfig,
    records: Iterable[RunRecord],
    metric: str = "map@r",
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

    Example:

    >>> check_finding(finding, records).verdict
    'confirmed'
    """
    records = list(records)
    experiments = {experiment_of(record) for record in records}
    if len(experiments) > 1:
        raise ValueError(
            "`records` must be of one experiment. Received: "
            f"{listed(sorted(experiments))}. `check_findings` takes them all."
        )
    experiment = experiments.pop() if experiments else None
    better, than = tuple(finding.better), tuple(finding.than)
    finding = finding.model_copy(update={"metric": finding.metric or metric})
    if finding.each and len(better) * len(than) > 1:
        return _every_pair(finding, experiment, records)
    return _compared(finding, experiment, records, better, than)


def _every_pair(
    finding: FindingConfig,
    experiment: Experiment | None,
    records: list[RunRecord],
) -> FindingResult:
    pairs = tuple(
        _compared(finding, experiment, records, (first,), (second,))
        for first, second in product(finding.better, finding.than)
    )
    verdicts = [pair.verdict for pair in pairs]
    measured = [pair for pair in pairs if not math.isnan(pair.difference)]
    verdict = next(
        (
            verdict
            for verdict in (CONTRADICTED, NOT_MEASURED, OPEN)
            if verdict in verdicts
        ),
        CONFIRMED,
    )
    worst = min(measured or pairs, key=lambda pair: pair.difference)
    notes = [
        f"{verdicts.count(CONFIRMED)} of {counted(len(pairs), 'pair')} "
        "confirmed"
    ]
    if measured:
        notes.append(
            f"the figures are of `{worst.better[0]}` against "
            f"`{worst.than[0]}`, the pair least in favor"
        )
    notes += dict.fromkeys(note for pair in pairs for note in pair.notes)
    return dataclasses.replace(
        worst,
        better=tuple(finding.better),
        than=tuple(finding.than),
        verdict=verdict,
        notes=tuple(notes),
        pairs=pairs,
    )


def _compared(
    finding: FindingConfig,
    experiment: Experiment | None,
    records: list[RunRecord],
    better: tuple[str, ...],
    than: tuple[str, ...],
) -> FindingResult:
    metric, runs = finding.metric or "", by_arm(records)
    arms = {arm: runs.get(arm, []) for arm in (*better, *than)}
    found = paired_repetitions(arms, metric)
    nothing = FindingResult(
        finding.claim,
        experiment,
        metric,
        better,
        than,
        math.nan,
        None,
        None,
        NOT_MEASURED,
    )
    if not found.keys:
        return dataclasses.replace(nothing, notes=_missing(arms, metric))
    names = list(arms)
    first = [names.index(arm) for arm in better]
    second = [names.index(arm) for arm in than]
    apart = found.values[:, first].mean(axis=1)
    apart = apart - found.values[:, second].mean(axis=1)
    # Remove rounding errors, so that equal arms do not differ.
    apart = np.round(apart, DIGITS)
    seeds = summarize(apart, unit=found.unit, folds=found.folds)
    queries = _queries(found, arms, better, than, metric)
    notes = _left_out(found, arms)
    if any(run.oracle for own in arms.values() for run in own):
        notes.append("oracle: epochs were chosen on the test classes")
    repeated = seeds.count > 1
    if not repeated:
        notes.append("one seed: nothing is known of other seeds")
    if isinstance(queries, str):
        notes.append(f"no interval over classes, because {queries}")
    intervals: list[Summary | Difference] = [seeds] if repeated else []
    intervals += [] if isinstance(queries, str) else [queries]
    return dataclasses.replace(
        nothing,
        difference=seeds.mean,
        seeds=seeds if repeated else None,
        queries=None if isinstance(queries, str) else queries,
        verdict=_verdict(intervals),
        notes=tuple(notes),
    )


def _verdict(intervals: list[Summary | Difference]) -> str:
    if intervals and all(interval.low > 0 for interval in intervals):
        return CONFIRMED
    if intervals and all(interval.high < 0 for interval in intervals):
        return CONTRADICTED
    return OPEN


def _queries(
    found: Repetitions,
    arms: dict[str, list[RunRecord]],
    better: tuple[str, ...],
    than: tuple[str, ...],
    metric: str,
) -> Difference | str:
    """Returns the interval over test classes, or why it is missing."""
    sides = []
    for names in (better, than):
        used = [
            run
            for arm in names
            for run in arms[arm]
            if run.status == "done" and (run.seed, run.fold) in found.pairs
        ]
        values = mean_over_runs(used, metric)
        if isinstance(values, str):
            return values
        sides.append(values)
    first, second = sides
    if not same_queries(first, second):
        return "the arms were measured on different queries"
    try:
        return paired_bootstrap(first.values, second.values, first.labels)
    except UsageError as error:
        return str(error)


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
            notes.append(f"`{arm}` is left to run")
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
