"""Tables of gaps, ranks, findings, settings found and runs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.findings import BOUNDS, FindingResult
from keras_dml.comparison.jobs import Tuned
from keras_dml.comparison.page.captions import (
    FINDINGS_CAPTION,
    gaps_caption,
    ranks_caption,
)
from keras_dml.comparison.page.table_formats import Cell, Column, Table
from keras_dml.comparison.ranks import RankTable
from keras_dml.comparison.records import Experiment, RunRecord
from keras_dml.comparison.standings import Standing
from keras_dml.comparison.summary import Summary, metric_of
from keras_dml.evaluation import Difference
from keras_dml.run.folder import RunFolder
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import duration, metric_title, slug, source_title


def gaps_table(
    found: Mapping[Experiment, Sequence[Standing]], metric: str
) -> Table:
    """Makes the table of paired differences from the best of an experiment."""
    rows = tuple(
        (
            *([Cell(experiment.title)] if len(found) > 1 else []),
            Cell(standing.arm),
            Cell.of("{:+.3f}", standing.gap.difference),
            _interval(standing.gap.seeds),
            _interval(standing.gap.queries),
            Cell(standing.verdict),
        )
        for experiment, arms in found.items()
        for standing in arms
        if standing.gap is not None
    )
    columns = (
        *([Column("experiment", numeric=False)] if len(found) > 1 else []),
        Column("arm", numeric=False),
        Column("gap"),
        Column("over seeds", ("seeds low", "seeds high")),
        Column("over classes", ("classes low", "classes high")),
        Column("verdict", numeric=False),
    )
    name = slug("behind the best", metric)
    return Table(name, gaps_caption(found, metric), columns, rows)


def runs_table(
    records: Iterable[RunRecord], metric: str, folder: Path
) -> Table:
    """Makes the table of runs, with links to their pages.

    Args:
        records: Runs of any state.
        metric: Name of the metric to show.
        folder: The folder of the page.
    """
    rows = []
    for record in {record.run: record for record in records}.values():
        page = record.folder and RunFolder(record.folder).report
        link = os.path.relpath(page, folder) if page and page.is_file() else ""
        seconds = record.train_seconds
        rows.append(
            (
                Cell(record.status),
                Cell.of("{:.3f}", metric_of(record, metric)),
                Cell(duration(seconds), (f"{seconds:g}",))
                if seconds
                else Cell("-"),
                Cell(record.run, link=link),
            )
        )
    return Table(
        "runs",
        "The name of a run leads to its page, once the page is written.",
        (
            Column("status", numeric=False),
            Column(metric_title(metric)),
            Column("training"),
            # Last, since the links are long.
            Column("run", numeric=False),
        ),
        tuple(rows),
    )


def ranks_table(ranks: RankTable, metric: str) -> Table:
    """Makes the table of ranks: total, average and deviation, best first."""
    rows = tuple(
        (
            Cell(arm),
            Cell(f"{total:g}"),
            Cell.of("{:.2f}", mean),
            Cell.of("{:.2f}", std),
        )
        for arm, total, mean, std in zip(
            ranks.arms, ranks.total, ranks.mean, ranks.std, strict=True
        )
    )
    columns = (
        Column("arm", numeric=False),
        Column("total rank"),
        Column("average rank"),
        Column("standard deviation"),
    )
    name = slug("ranks", metric)
    return Table(name, ranks_caption(ranks, metric), columns, rows)


def findings_table(results: Sequence[FindingResult]) -> Table:
    """Makes the table of claims: differences, intervals and verdicts."""
    rows = tuple(
        (
            Cell(result.finding.claim),
            Cell(result.experiment.title if result.experiment else "-"),
            Cell(metric_title(result.finding.metric or "")),
            Cell.of("{:+.3f}", result.difference),
            _interval(result.seeds),
            _interval(result.queries),
            Cell(result.verdict, bold=True),
        )
        for result in results
    )
    columns = (
        Column("claim", numeric=False),
        Column("experiment", numeric=False),
        Column("metric", numeric=False),
        Column("difference"),
        Column("over seeds", ("seeds low", "seeds high")),
        Column("over classes", ("classes low", "classes high")),
        Column("verdict", numeric=False),
    )
    return Table("findings", FINDINGS_CAPTION, columns, rows)


def settings_table(tunings: Mapping[Tuned, TuningResult]) -> Table:
    """Makes the table of the best settings of each tuning."""
    rows = []
    for (source, backbone, arm), result in tunings.items():
        network = f", {backbone}" if backbone else ""
        settings = ", ".join(
            f"{key} {value}" for key, value in result.best.parameters.items()
        )
        rows.append(
            (
                Cell(arm),
                Cell(f"{source_title(source)}{network}"),
                Cell(settings),
                Cell.of("{:.3f}", result.best.value),
                Cell(str(len(result.trials))),
                Cell(str(result.count("pruned"))),
            )
        )
    metric = metric_title(result.metric)
    return Table(
        "settings",
        "Chosen on validation classes: the best of several values there is "
        "too high by chance, and not what the test classes give.",
        (
            Column("arm", numeric=False),
            Column("data", numeric=False),
            Column("settings", numeric=False),
            Column(f"validation {metric}"),
            Column("trials"),
            Column("stopped early"),
        ),
        tuple(rows),
    )


def _interval(interval: Summary | Difference | None) -> Cell:
    if interval is None:
        return Cell.of("", None, None)
    return Cell.of(BOUNDS, interval.low, interval.high)
