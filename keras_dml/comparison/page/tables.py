"""Tables of results, ranks and findings."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from keras_dml.comparison.findings import FindingResult, bounds
from keras_dml.comparison.page.captions import (
    findings_caption,
    ranks_caption,
    results_caption,
)
from keras_dml.comparison.page.paper import (
    PaperColumn,
    paper_columns,
)
from keras_dml.comparison.page.table_formats import Cell, Column, Table
from keras_dml.comparison.ranks import RankTable
from keras_dml.comparison.records import (
    Network,
    RunRecord,
    by_arm,
    experiment_of,
    grouped,
    network_of,
)
from keras_dml.comparison.summary import Summary, metric_of, summarize_arms
from keras_dml.config.plan_sections import PaperTable
from keras_dml.evaluation import Difference
from keras_dml.tuning.trials import ArmTuning
from keras_dml.wording import (
    metric_title,
    slug,
    source_title,
)

_NONE = "-"


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
    names = _unique_names(networks)
    measured = {
        network: {
            metric
            for metric in metrics
            if any(metric_of(run, metric) is not None for run in runs)
        }
        for network, runs in networks.items()
    }
    tables = []
    for network, runs in networks.items():
        paper = paper_columns(printed, runs, metrics)
        own = measured[network] | {column.metric for column in paper}
        elsewhere = set().union(*measured.values()) - own
        shown = [metric for metric in metrics if metric not in elsewhere]
        tables.append(
            _results_table(
                names[network], network, runs, shown, paper, protocol
            )
        )
    return tables


def ranks_table(ranks: RankTable, metric: str) -> Table:
    """Makes the table of ranks: total, average and deviation, best first."""
    rows = tuple(
        (
            Cell(arm),
            Cell(f"{total:g}"),
            Cell(f"{mean:.2f}", (_exact(mean),)),
            Cell(_NONE if math.isnan(std) else f"{std:.2f}", (_exact(std),)),
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
    rows = []
    for result in results:
        measured = not math.isnan(result.difference)
        where = _NONE if result.experiment is None else result.experiment.title
        rows.append(
            (
                Cell(result.claim),
                Cell(where),
                Cell(metric_title(result.metric)),
                Cell(
                    f"{result.difference:+.3f}" if measured else _NONE,
                    (_exact(result.difference),),
                ),
                _interval_cell(result.seeds),
                _interval_cell(result.queries),
                Cell(result.verdict, bold=True),
            )
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
    return Table("findings", findings_caption(), columns, tuple(rows))


def settings_table(tunings: Sequence[ArmTuning]) -> Table:
    """Makes the table of the best settings of each tuning."""
    rows = []
    for tuning in tunings:
        result = tuning.result
        network = f", {tuning.backbone}" if tuning.backbone else ""
        settings = ", ".join(
            f"{key} {value}" for key, value in result.best.parameters.items()
        )
        best = result.best.value
        value = math.nan if best is None else best
        rows.append(
            (
                Cell(tuning.arm),
                Cell(f"{source_title(tuning.source)}{network}"),
                Cell(settings),
                Cell(f"{value:.3f}", (_exact(value),)),
                Cell(str(len(result.trials))),
                Cell(str(result.count("pruned"))),
            )
        )
    metric = metric_title(tunings[0].result.metric)
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


def _interval_cell(interval: Summary | Difference | None) -> Cell:
    if interval is None:
        return Cell(_NONE, ("", ""))
    return Cell(bounds(interval), (_exact(interval.low), _exact(interval.high)))


def _results_table(
    name: str,
    network: Network,
    runs: list[RunRecord],
    metrics: Sequence[str],
    paper: Sequence[PaperColumn],
    protocol: str,
) -> Table:
    summaries = {metric: summarize_arms(runs, metric) for metric in metrics}
    several = len({run.dim for run in runs}) > 1

    def of_paper(metric: str) -> list[PaperColumn]:
        return [column for column in paper if column.metric == metric]

    columns = [Column("arm", numeric=False)]
    columns += [Column("dim")] if several else []
    for metric in metrics:
        title = metric_title(metric)
        parts = ("mean", "std", "low", "high")
        columns.append(
            Column(title, tuple(f"{title} {part}" for part in parts))
        )
        columns += [Column(each.title) for each in of_paper(metric)]
    columns.append(Column("runs", ("done", "failed", "left")))
    rows = [*_pretrained_rows(runs, metrics, several, paper)]
    for experiment, own in sorted(
        grouped(runs, experiment_of).items(), key=lambda item: item[0].dim
    ):
        for arm, arm_runs in by_arm(own).items():
            cells = [Cell(arm + _oracle_mark(arm_runs, runs))]
            cells += [Cell(str(experiment.dim))] if several else []
            for metric in metrics:
                found = summaries[metric].get(experiment, {})
                cells.append(_summary_cell(found.get(arm), found))
                cells += [
                    _paper_cell(column.of(arm, experiment.dim))
                    for column in of_paper(metric)
                ]
            rows.append((*cells, _runs_cell(arm_runs)))
    caption = results_caption(
        network, runs, metrics, summaries, paper, protocol
    )
    return Table(name, caption, tuple(columns), tuple(rows))


def _summary_cell(
    summary: Summary | None, others: Mapping[str, Summary]
) -> Cell:
    if summary is None:
        return Cell(_NONE, ("",) * 4)
    best = max(other.mean for other in others.values())
    text = f"{summary.mean:.3f}"
    if not math.isnan(summary.std):
        text += f" ± {summary.std:.3f}"
    values = (summary.mean, summary.std, summary.low, summary.high)
    numbers = tuple(_exact(value) for value in values)
    return Cell(text, numbers, summary.mean == best and len(others) > 1)


def _paper_cell(value: str | None) -> Cell:
    return Cell(_NONE, ("",)) if value is None else Cell(value)


def _pretrained_rows(
    runs: list[RunRecord],
    metrics: Sequence[str],
    several: bool,
    paper: Sequence[PaperColumn],
) -> Iterable[tuple[Cell, ...]]:
    """Yields the row with the metrics of the features before training."""
    found = [run.pretrained for run in runs if run.pretrained]
    if not found:
        return
    raw = runs[0].weights in ("none", "")
    cells = [Cell("(raw pixels)" if raw else "(pretrained features)")]
    cells += [Cell(_NONE, ("",))] if several else []
    for metric in metrics:
        values = [each[metric] for each in found if metric in each]
        if not values:
            cells.append(Cell(_NONE, ("",) * 4))
        else:
            mean = math.fsum(values) / len(values)
            cells.append(Cell(f"{mean:.3f}", (_exact(mean), "", "", "")))
        cells += [
            _paper_cell(None) for column in paper if column.metric == metric
        ]
    yield (*cells, Cell(_NONE, ("",) * 3))


def _runs_cell(runs: list[RunRecord]) -> Cell:
    counts = [
        sum(run.status == status for run in runs)
        for status in ("done", "failed", "left")
    ]
    others = [
        f"{count} {status}"
        for count, status in zip(counts[1:], ("failed", "left"), strict=True)
        if count
    ]
    text = f"{counts[0]} ({', '.join(others)})" if others else f"{counts[0]}"
    return Cell(text, tuple(str(count) for count in counts))


def _oracle_mark(own: list[RunRecord], runs: list[RunRecord]) -> str:
    mixed = len({run.oracle for run in runs}) > 1
    return " (oracle)" if mixed and any(run.oracle for run in own) else ""


def _unique_names(networks: Iterable[Network]) -> dict[Network, str]:
    names: dict[Network, str] = {}
    taken = Counter[str]()
    for network in networks:
        source = source_title(network.source)
        name = slug("results", source, network.backbone, network.weights)
        taken[name] += 1
        number = f"-{taken[name]}" if taken[name] > 1 else ""
        names[network] = f"{name}{number}"
    return names


def _exact(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
