"""Numbers that papers print, to stand beside what is measured."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_dml.comparison.records import RunRecord, by_arm
from keras_dml.config.plan_sections import PaperTable
from keras_dml.wording import metric_title


class PaperColumn(NamedTuple):
    """Values of one metric from one place.

    Args:
        title: Head of the column.
        metric: Name of the metric.
        place: Where the values are printed, and of what data.
        values: Dict of arms and embedding sizes, `None` for any, to what is
            printed.
    """

    title: str
    metric: str
    place: str
    values: dict[tuple[str, int | None], str]

    def of(self, arm: str, dim: int) -> str | None:
        """What is printed for an arm of that size, if anything is."""
        return self.values.get((arm, dim), self.values.get((arm, None)))


def paper_columns(
    tables: Iterable[PaperTable],
    runs: Sequence[RunRecord],
    metrics: Sequence[str],
) -> list[PaperColumn]:
    """Columns of printed numbers for the arms and metrics of a table.

    Numbers of other data are left out if any are of the table's own data; a
    plan that is run on the user's own data shows them all.

    Args:
        tables: Printed numbers.
        runs: Runs of the table, of one network on the same data.
        metrics: Metrics of the table.
    """
    arms = {arm: {arm, own[0].line} for arm, own in by_arm(runs).items()}
    source, backbone = runs[0].source, runs[0].backbone
    tables = [t for t in tables if t.backbone in (None, backbone)]
    own = [table for table in tables if table.source == source]
    cells: dict[tuple[str, str], dict[tuple[str, int | None], str]] = {}
    for table in own or tables:
        place = f"{table.where.rstrip('.')} ({table.source})"
        for arm, names in arms.items():
            for line in names & table.values.keys():
                for metric, value in table.values[line].items():
                    if metric in metrics:
                        column = cells.setdefault((metric, place), {})
                        column[arm, table.dim] = f"{value:g}"
    places = list(dict.fromkeys(place for _, place in cells))
    columns = []
    for (metric, place), column in cells.items():
        number = f" {places.index(place) + 1}" if len(places) > 1 else ""
        title = f"{metric_title(metric)}, paper{number}"
        columns.append(PaperColumn(title, metric, place, column))
    return columns


def places_in_words(columns: Sequence[PaperColumn]) -> str:
    """Where the columns stand, as a sentence."""
    places = list(dict.fromkeys(column.place for column in columns))
    if len(places) == 1:
        named = f"Paper: {places[0]}"
    else:
        named = "Columns of papers: " + "; ".join(
            f"{number} {place}" for number, place in enumerate(places, start=1)
        )
    return f"{named}; as printed there, not measured here."
