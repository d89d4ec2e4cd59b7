"""Writes the tables, the figures and the page of a comparison."""

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from keras_dml.comparison.budget import budget_in_words
from keras_dml.comparison.findings import check_findings
from keras_dml.comparison.jobs import Tuned
from keras_dml.comparison.page.captions import seeds_in_words
from keras_dml.comparison.page.critical_difference import (
    critical_difference_diagram,
)
from keras_dml.comparison.page.figures import (
    quality_by_arm,
    quality_by_factor,
    quality_by_size,
    swept_factors,
)
from keras_dml.comparison.page.page import Page
from keras_dml.comparison.page.results import results_tables
from keras_dml.comparison.page.table_formats import Cell, Column, Table
from keras_dml.comparison.page.tables import (
    findings_table,
    gaps_table,
    ranks_table,
    runs_table,
    settings_table,
)
from keras_dml.comparison.protocols import get_protocol
from keras_dml.comparison.ranks import RankTable, rank_records
from keras_dml.comparison.records import (
    RunRecord,
    by_arm,
    counts_in_words,
    trained_runs,
)
from keras_dml.comparison.standings import (
    METRICS,
    conclusions,
    ranked_by,
    standings,
)
from keras_dml.comparison.summary import metric_of
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import (
    counted,
    duration,
    listed,
    metric_meaning,
    metric_title,
    slug,
    source_title,
)

# Fewer arms than this need no diagram.
_LEAST_ARMS = 3


def write_comparison(
    plan: PlanConfig,
    records: Iterable[RunRecord],
    folder: str | Path,
    tunings: Mapping[Tuned, TuningResult] | None = None,
) -> Path:
    """Writes `tables/`, `figures/`, `report.md` and `page.html` into a folder.

    The same records give the same bytes of every table and of the pages. Ranks
    and figures are by MAP@R where it is among the metrics of the plan, else by
    the first of them.

    Args:
        plan: What was compared: title, findings, metrics, paper values,
            protocol and budget. Without metrics, the page shows the usual
            ones.
        records: Runs of any state, in the order of the plan.
        folder: Where to write; it is made if it does not exist.
        tunings: Dict from data, network and arm to the tuning that found
            settings before the runs. Defaults to none.

    Returns:
        The path of `report.md`.

    Example:

    ```python
    write_comparison(load_plan("grocery"), records, "runs/grocery")
    ```
    """
    records, page = list(records), Page(folder, plan.title)
    metrics = list(plan.metrics) or _usual_metrics(records)
    metric = ranked_by(metrics)
    protocol = get_protocol(plan.protocol).in_words
    budget = budget_in_words(plan.budget)
    page.add(
        f"{plan.about.strip()} {plan.paper}".strip(),
        _what_was_run(records),
        f"Protocol: {protocol}.",
        f"Budget: {budget}." if budget else "",
    )
    found = standings(records, metrics, metric)
    said = conclusions(found, metric_title(metric))
    if said:
        meaning = metric_meaning(metric)
        explained = f"{metric_title(metric)} is {meaning}." if meaning else ""
        page.add("## Verdict", *said, explained)
    page.add("## Results", _never_measured(records, metrics))
    for table in results_tables(
        records, metrics, paper_values=plan.paper_values, protocol=protocol
    ):
        page.add_table(table)
    gaps = gaps_table(found, metric)
    if gaps.rows:
        page.add("## Behind the best")
        page.add_table(gaps)
    page.add("## Ranks")
    _add_ranks(page, rank_records(records, metric), metric)
    results = check_findings(plan.findings, records, metric)
    if results:
        sentences = [f"- {result.sentence}" for result in results]
        page.add("## Findings", "\n".join(sentences))
        page.add_table(findings_table(results))
    if tunings:
        page.add("## Settings found")
        page.add_table(settings_table(tunings))
    _add_figures(page, records, metric)
    page.add("## Runs")
    page.add_table(runs_table(records, metric, page.path.parent), files=False)
    _add_failed(page, records)
    page.write()
    return page.path


def _usual_metrics(records: list[RunRecord]) -> list[str]:
    found = dict.fromkeys(
        name for run in records if run.status == "done" for name in run.after
    )
    usual = [metric for metric in METRICS if metric in found]
    return usual or list(found) or ["map@r"]


def _never_measured(records: list[RunRecord], metrics: list[str]) -> str:
    absent = [
        f"`{metric}`"
        for metric in metrics
        if all(metric_of(run, metric) is None for run in records)
    ]
    if not absent or all(run.status != "done" for run in records):
        return ""
    return f"No run measured {listed(absent)}."


def _what_was_run(records: list[RunRecord]) -> str:
    """Describes the runs: counts, arms, data, networks, training time."""
    records = trained_runs(records)
    done = [run for run in records if run.status == "done"]
    sources = dict.fromkeys(source_title(run.source) for run in records)
    backbones = dict.fromkeys(run.backbone for run in records)
    dims = sorted({run.dim for run in records})
    text = (
        f"{counts_in_words(records)}. "
        f"{counted(len(by_arm(records)), 'arm')} on {listed(sources)} with "
        f"{listed(backbones)}, embedding size {listed(dims)}, "
        f"{seeds_in_words(records)}."
    )
    if done:
        seconds = [run.train_seconds for run in done]
        text += (
            f" Training took {duration(sum(seconds))}, "
            f"{duration(statistics.median(seconds))} in the median run."
        )
    return text


def _add_ranks(page: Page, ranks: RankTable | None, metric: str) -> None:
    if ranks is None:
        page.add("Not ranked: no two arms finished the same experiment.")
        return
    page.add_table(ranks_table(ranks, metric))
    if len(ranks.arms) >= _LEAST_ARMS and ranks.num_blocks > 1:
        page.add_figure(
            "Critical differences of average ranks",
            critical_difference_diagram(ranks, metric),
            slug("critical difference", metric),
        )


def _add_figures(page: Page, records: list[RunRecord], metric: str) -> None:
    title, swept = metric_title(metric), swept_factors(records)
    figures = {}
    if not swept:
        figures[f"{title} of each arm"] = quality_by_arm(records, metric)
    figures[f"{title} by embedding size"] = quality_by_size(records, metric)
    for factor in swept:
        figure = quality_by_factor(records, metric, factor)
        figures[f"{title} by {factor}"] = figure
    if any(figures.values()):
        page.add("## Figures")
    for text, figure in figures.items():
        if figure is not None:
            page.add_figure(text, figure)


def _add_failed(page: Page, records: list[RunRecord]) -> None:
    failed = [run for run in records if run.status == "failed"]
    if failed:
        table = Table(
            "failed",
            "No mean or figure above has any of these in it.",
            (Column("run", numeric=False), Column("error", numeric=False)),
            tuple((Cell(r.run), Cell(r.error or "no message")) for r in failed),
        )
        page.add("## Failed runs")
        page.add_table(table, files=False)
