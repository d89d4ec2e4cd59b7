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
from keras_dml.wording import metric_title, slug, source_title


class _Part(NamedTuple):
    """A column, with what makes its cells.

    Args:
        column: The header.
        cell: Function from an experiment and the runs of an arm to the cell.
        pretrained: The cell in the row of the features before training.
    """

    column: Column
    cell: Callable[[Experiment, list[RunRecord]], Cell]
    pretrained: Cell


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
        parts.append(_Part(dim, lambda of, _: Cell(str(of.dim)), dim.empty))
    for metric in metrics:
        parts.append(_metric_part(metric, runs))
        parts += [_paper_part(each) for each in paper if each.metric == metric]
    states = Column("runs", STATUSES)
    parts.append(_Part(states, _runs_cell, states.empty))
    rows = []
    if any(run.pretrained for run in runs):
        rows.append(tuple(part.pretrained for part in parts))
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

    raw = runs[0].weights in ("none", "")
    first = Cell("(raw pixels)" if raw else "(pretrained features)")
    return _Part(Column("arm", numeric=False), cell, first)


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

    before = [
        run.pretrained[metric] for run in runs if metric in run.pretrained
    ]
    mean = math.fsum(before) / len(before) if before else None
    return _Part(column, cell, Cell.of("{:.3f}", mean, None, None, None))


def _paper_part(printed: PaperColumn) -> _Part:
    column = Column(printed.title)

    def cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
        value = printed.of(own[0].arm, experiment.dim)
        return column.empty if value is None else Cell(value)

    return _Part(column, cell, column.empty)


def _runs_cell(experiment: Experiment, own: list[RunRecord]) -> Cell:
    states = Counter(run.status for run in own)
    others = [f"{states[key]} {key}" for key in STATUSES[1:] if states[key]]
    text = str(states["done"]) + (f" ({', '.join(others)})" if others else "")
    return Cell(text, tuple(str(states[key]) for key in STATUSES))
