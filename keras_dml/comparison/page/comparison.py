"""Writes the tables, the figures and the page of a comparison."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.findings import check_findings
from keras_dml.comparison.jobs import Tuned
from keras_dml.comparison.page.critical_difference import (
    critical_difference_diagram,
)
from keras_dml.comparison.page.figures import (
    quality_by_arm,
    quality_by_factor,
    quality_by_size,
    swept_factors,
)
from keras_dml.comparison.page.results import results_tables
from keras_dml.comparison.page.table_formats import (
    Cell,
    Column,
    Table,
    to_csv,
    to_latex,
    to_markdown,
)
from keras_dml.comparison.page.tables import (
    findings_table,
    ranks_table,
    settings_table,
)
from keras_dml.comparison.protocols import budget_in_words, get_protocol
from keras_dml.comparison.ranks import RankTable, rank_records
from keras_dml.comparison.records import RunRecord, by_arm, trained_runs
from keras_dml.comparison.summary import metric_of
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.files import write_text
from keras_dml.plotting import save_figure
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import (
    counted,
    duration,
    listed,
    metric_title,
    slug,
    source_title,
)

FILE = "report.md"
# Shown if a plan names no metrics.
METRICS = ("recall@1", "recall@2", "recall@4", "recall@8", "map@r")
_WRITERS = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
# Fewer arms than this need no diagram.
_LEAST_ARMS = 3


def write_comparison(
    plan: PlanConfig,
    records: Iterable[RunRecord],
    folder: str | Path,
    tunings: Mapping[Tuned, TuningResult] | None = None,
) -> Path:
    """Writes `tables/`, `figures/` and `report.md` into a folder.

    The same records give the same bytes of every table and of the page. Ranks
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
        The page's path.

    Example:

    ```python
    write_comparison(load_plan("grocery"), records, "runs/grocery")
    ```
    """
    records, folder = list(records), Path(folder)
    metrics = list(plan.metrics) or _usual_metrics(records)
    ranked_by = "map@r" if "map@r" in metrics else metrics[0]
    protocol = get_protocol(plan.protocol).in_words
    budget = budget_in_words(plan.budget)
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [
        f"# {plan.title}",
        " ".join([plan.about.strip(), plan.paper]).strip(),
        _what_was_run(records),
        f"Protocol: {protocol}.",
        f"Budget: {budget}." if budget else "",
        "## Results",
    ]
    absent = _never_measured(records, metrics)
    if absent:
        parts.append(f"No run measured {listed(absent)}.")
    for table in results_tables(
        records, metrics, paper_values=plan.paper_values, protocol=protocol
    ):
        parts += _write_table(table, folder)
    ranks = rank_records(records, ranked_by)
    parts.append("## Ranks")
    parts += _ranks(ranks, ranked_by, folder)
    results = check_findings(plan.findings, records, ranked_by)
    if results:
        parts.append("## Findings")
        parts.append("\n".join(f"- {result.sentence}" for result in results))
        parts += _write_table(findings_table(results), folder)
    if tunings:
        parts.append("## Settings found")
        parts += _write_table(settings_table(tunings), folder)
    parts += _figures(records, ranked_by, folder)
    parts += _unfinished(records)
    page = "\n\n".join(part.strip("\n") for part in parts if part)
    path = folder / FILE
    write_text(path, page + "\n")
    return path


def _usual_metrics(records: list[RunRecord]) -> list[str]:
    found = dict.fromkeys(
        name for run in records if run.status == "done" for name in run.after
    )
    usual = [metric for metric in METRICS if metric in found]
    return usual or list(found) or ["map@r"]


def _never_measured(
    records: list[RunRecord], metrics: Sequence[str]
) -> list[str]:
    if not any(run.status == "done" for run in records):
        return []
    return [
        f"`{metric}`"
        for metric in metrics
        if all(metric_of(run, metric) is None for run in records)
    ]


def _what_was_run(records: list[RunRecord]) -> str:
    """Describes the runs: counts, arms, data, networks, training time."""
    records = trained_runs(records)
    states = [run.status for run in records]
    done = [run for run in records if run.status == "done"]
    sources = dict.fromkeys(source_title(run.source) for run in records)
    backbones = dict.fromkeys(run.backbone for run in records)
    dims = sorted({run.dim for run in records})
    seeds = sorted({run.seed for run in records})
    folds = {run.fold for run in records} - {None}
    text = (
        f"{counted(len(records), 'run')}: {len(done)} done, "
        f"{states.count('failed')} failed, {states.count('left')} left. "
        f"{counted(len(by_arm(records)), 'arm')} on {listed(sources)} with "
        f"{listed(backbones)}, embedding size {listed(dims)}, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)}"
    )
    text += f", {counted(len(folds), 'fold')}." if folds else "."
    if done:
        seconds = [run.train_seconds for run in done]
        text += (
            f" Training took {duration(sum(seconds))}, "
            f"{duration(statistics.median(seconds))} in the median run."
        )
    return text


def _ranks(ranks: RankTable | None, metric: str, folder: Path) -> list[str]:
    if ranks is None:
        return ["Not ranked: no two arms finished the same experiment."]
    parts = _write_table(ranks_table(ranks, metric), folder)
    if len(ranks.arms) >= _LEAST_ARMS and ranks.num_blocks > 1:
        figure = critical_difference_diagram(ranks, metric)
        name = slug("critical difference", metric)
        save_figure(figure, folder / "figures" / name)
        parts.append(_picture("Critical differences of average ranks", name))
    return parts


def _figures(records: list[RunRecord], metric: str, folder: Path) -> list[str]:
    title, swept = metric_title(metric), swept_factors(records)
    figures = {}
    if not swept:
        figures[f"{title} of each arm"] = quality_by_arm(records, metric)
    figures[f"{title} by embedding size"] = quality_by_size(records, metric)
    for factor in swept:
        figures[f"{title} by {factor}"] = quality_by_factor(
            records, metric, factor
        )
    parts = []
    for text, figure in figures.items():
        if figure is not None:
            name = slug(text)
            save_figure(figure, folder / "figures" / name)
            parts.append(_picture(text, name))
    return ["## Figures", *parts] if parts else []


def _unfinished(records: list[RunRecord]) -> list[str]:
    failed = [run for run in records if run.status == "failed"]
    left = [run for run in records if run.status == "left"]
    parts = []
    if failed:
        table = Table(
            "failed",
            "No mean or figure above has any of these in it.",
            (Column("run", numeric=False), Column("error", numeric=False)),
            tuple(
                (Cell(run.run), Cell(run.error or "no message"))
                for run in failed
            ),
        )
        parts += ["## Failed runs", to_markdown(table)]
    if left:
        names = listed(f"`{run.run}`" for run in left)
        parts += ["## Runs left", f"{names}."]
    return parts


def _write_table(table: Table, folder: Path) -> list[str]:
    """Writes the table in three formats; returns its part of the page."""
    for kind, write in _WRITERS.items():
        path = folder / "tables" / f"{table.name}.{kind}"
        write_text(path, write(table))
    links = [
        f"[{label}](tables/{table.name}.{kind})"
        for label, kind in (("CSV", "csv"), ("LaTeX", "tex"))
    ]
    return [to_markdown(table), f"This table as {listed(links)}."]


def _picture(text: str, name: str) -> str:
    return f"![{text}](figures/{name}.png)\n\n[SVG](figures/{name}.svg)"
