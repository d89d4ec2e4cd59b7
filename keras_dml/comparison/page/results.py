"""Tables of results: one for each data set, network and weights."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from keras_dml.comparison.page.captions import results_caption
from keras_dml.comparison.page.paper import PaperColumn, paper_columns
from keras_dml.comparison.page.table_formats import Cell, Column, Table
from keras_dml.comparison.records import (
    STATUSES,
    Experiment,
    RunRecord,
    by_arm,
    experiment_of,
    grouped,
    network_of,
)
from keras_dml.comparison.summary import metric_of, summarize_arms
from keras_dml.config.plan_sections import PaperTable
from keras_dml.wording import listed, metric_title, slug, source_title

# Less than three digits show.
ALIKE = 5e-4


class _Part(NamedTuple):
    """A column, with what makes its cells.

    Args:
        column: The header.
        cell: Function from an experiment and the runs of an arm to the cell.
        features: Function from runs with the same features before training to
            the cell in the row of these.
    """

    column: Column
    cell: Callable[[Experiment, list[RunRecord]], Cell]
    features: Callable[[list[RunRecord]], Cell]


def results_tables(
    records: Iterable[RunRecord],
    metrics: Sequence[str],
    *,
    paper_values: Iterable[PaperTable] = (),
    protocol: str = "",
) -> list[Table]:
    """Makes one table for each data set, network and weights.

    Args:
        records: Runs of any state.
        metrics: Names of metrics, one column each. A table leaves out metrics
            that only runs of other tables measured.
        paper_values: Numbers printed in papers, in separate columns. Defaults
            to `()`.
        protocol: A sentence on how epochs were chosen. Defaults to `""`.
    """
    networks, printed = grouped(records, network_of), list(paper_values)
    measured = {
        network: {
            metric
            for metric in metrics
            if any(metric_of(run, metric) is not None for run in runs)
        }
        for network, runs in networks.items()
    }
    tables, taken = [], Counter[str]()
    for network, runs in networks.items():
        paper = paper_columns(printed, runs, metrics)
        own = measured[network] | {column.metric for column in paper}
        elsewhere = set().union(*measured.values()) - own
        shown = [metric for metric in metrics if metric not in elsewhere]
        source = source_title(network.source)
        name = slug("results", source, network.backbone, network.weights)
        taken[name] += 1
        name += f"-{taken[name]}" if taken[name] > 1 else ""
        tables.append(_results_table(name, runs, shown, paper, protocol))
    return tables


def _results_table(
    name: str,
    runs: list[RunRecord],
    metrics: Sequence[str],
    paper: Sequence[PaperColumn],
    protocol: str,
) -> Table:
    parts = [_arm_part(runs)]
    if len({run.dim for run in runs}) > 1:
        dim = Column("dim")
        parts.append(
            _Part(dim, lambda of, _: Cell(str(of.dim)), lambda _: dim.empty)
        )
    for metric in metrics:
        parts.append(_metric_part(metric, runs))
        parts += [_paper_part(each) for each in paper if each.metric == metric]
    states = Column("runs", STATUSES)
    parts.append(_Part(states, _runs_cell, lambda _: states.empty))
    rows = [
        tuple(part.features(alike) for part in parts)
        for alike in _by_features(runs)
    ]
    experiments = grouped(runs, experiment_of)
    for experiment in sorted(experiments, key=lambda each: each.dim or 0):
        for own in by_arm(experiments[experiment]).values():
            rows.append(tuple(part.cell(experiment, own) for part in parts))
    caption = results_caption(runs, metrics, paper, protocol)
    columns = tuple(part.column for part in parts)
    return Table(name, caption, columns, tuple(rows))


def _arm_part(runs: list[RunRecord]) -> _Part:
    mixed = len({run.oracle for run in runs}) > 1

    def cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
        oracle = mixed and any(run.oracle for run in own)
        return Cell(own[0].arm + (" (oracle)" if oracle else ""))

    several = len(_by_features(runs)) > 1

    def features(alike: list[RunRecord]) -> Cell:
        raw = alike[0].weights in ("none", "")
        name = "raw pixels" if raw else "pretrained features"
        of = f" of {listed(by_arm(alike))}" if several else ""
        return Cell(f"({name}{of})")

    return _Part(Column("arm", numeric=False), cell, features)


def _by_features(runs: Iterable[RunRecord]) -> list[list[RunRecord]]:
    """Groups runs whose features before training retrieve equally well.

    Arms differ in these if they pool differently, or enlarge the images.
    """
    groups: list[dict[str, list[RunRecord]]] = []
    known = [run for run in runs if run.pretrained]
    for arm, own in by_arm(known).items():
        for group in groups:
            if all(_equal(own, others) for others in group.values()):
                group[arm] = own
                break
        else:
            groups.append({arm: own})
    return [[run for own in group.values() for run in own] for group in groups]


def _equal(first: list[RunRecord], second: list[RunRecord]) -> bool:
    """Returns whether features agree where both have the seed and fold."""
    other = {(run.seed, run.fold): run.pretrained for run in second}
    return all(
        abs(value - other[key].get(metric, value)) < ALIKE
        for run in first
        if (key := (run.seed, run.fold)) in other
        for metric, value in run.pretrained.items()
    )


def _metric_part(metric: str, runs: list[RunRecord]) -> _Part:
    title = metric_title(metric)
    names = ("mean", "std", "low", "high")
    column = Column(title, tuple(f"{title} {name}" for name in names))
    summaries = summarize_arms(runs, metric)

    def cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
        found = summaries[experiment]
        if own[0].arm not in found:
            return column.empty
        one = found[own[0].arm]
        best = max(summary.mean for summary in found.values())
        form = "{:.3f}" if math.isnan(one.std) else "{:.3f} ± {:.3f}"
        made = Cell.of(form, one.mean, one.std, one.low, one.high)
        bold = one.mean == best and len(found) > 1
        return dataclasses.replace(made, bold=bold)

    def features(alike: list[RunRecord]) -> Cell:
        found = [run.pretrained.get(metric) for run in alike]
        values = [value for value in found if value is not None]
        mean = math.fsum(values) / len(values) if values else None
        return Cell.of("{:.3f}", mean, None, None, None)

    return _Part(column, cell, features)


def _paper_part(printed: PaperColumn) -> _Part:
    column = Column(printed.title)

    def cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
        value = printed.of(own[0].arm, experiment.dim)
        return column.empty if value is None else Cell(value)

    def features(alike: list[RunRecord]) -> Cell:
        before = printed.pretrained
        values = {before[arm] for arm in by_arm(alike) if arm in before}
        text = " or ".join(sorted(values))
        return Cell(text) if text else column.empty

    return _Part(column, cell, features)


def _runs_cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
    states = Counter(run.status for run in own)
    others = [f"{states[key]} {key}" for key in STATUSES[1:] if states[key]]
    text = str(states["done"]) + (f" ({', '.join(others)})" if others else "")
    return Cell(text, tuple(str(states[key]) for key in STATUSES))
