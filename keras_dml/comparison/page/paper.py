"""Columns of numbers printed in papers, next to the measured ones."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_dml.comparison.records import RunRecord, by_arm
from keras_dml.config.plan_sections import PaperTable
from keras_dml.wording import metric_title


class PaperColumn(NamedTuple):
    """The values of one metric that one place of a paper prints.

    Args:
        title: Title of the column.
        metric: Name of the metric.
        place: Where the values are printed, and for which data.
        values: Dict from pairs of an arm and an embedding size (`None` for
            any size) to the printed value.
        pretrained: Dict from an arm to the printed value of its features
            before training.
    """

    title: str
    metric: str
    place: str
    values: dict[tuple[str, int | None], str]
    pretrained: dict[str, str]

    def of(self, arm: str, dim: int | None) -> str | None:
        """Returns the printed value of an arm of that size, or `None`."""
        return self.values.get((arm, dim), self.values.get((arm, None)))


def paper_columns(
    tables: Iterable[PaperTable],
    runs: Sequence[RunRecord],
    metrics: Sequence[str],
) -> list[PaperColumn]:
    """Makes the columns of printed numbers for the arms of a table.

    If some numbers are for the data of the table, only these are shown.
    Otherwise, as on the user's own data, the numbers for all data are shown.

    Args:
        tables: Printed numbers.
        runs: Runs of the table: one network, one data set.
        metrics: Metrics of the table.
    """
    # A number for the value of a grid that a row has is more exact.
    arms = {
        arm: dict.fromkeys((own[0].line, arm))
        for arm, own in by_arm(runs).items()
    }
    source, backbone = runs[0].source, runs[0].backbone
    tables = [t for t in tables if t.backbone in (None, backbone)]
    own = [table for table in tables if table.source == source]
    cells: dict[tuple[str, str], dict[tuple[str, int | None], str]] = {}
    features: dict[tuple[str, str], dict[str, str]] = {}
    for table in own or tables:
        place = f"{table.where.rstrip('.')} ({table.source})"
        for arm, names in arms.items():
            for line in names:
                for metric, value in table.values.get(line, {}).items():
                    if metric in metrics:
                        column = cells.setdefault((metric, place), {})
                        column[arm, table.dim] = f"{value:g}"
            for line in names:
                for metric, value in table.pretrained.get(line, {}).items():
                    features.setdefault((metric, place), {})[arm] = f"{value:g}"
    places = list(dict.fromkeys(place for _, place in cells))
    columns = []
    for (metric, place), column in cells.items():
        number = f" {places.index(place) + 1}" if len(places) > 1 else ""
        title = f"{metric_title(metric)}, paper{number}"
        before = features.get((metric, place), {})
        columns.append(PaperColumn(title, metric, place, column, before))
    return columns


def places_in_words(columns: Sequence[PaperColumn]) -> str:
    """Says in a sentence where the numbers of the columns are printed."""
    places = list(dict.fromkeys(column.place for column in columns))
    if len(places) == 1:
        named = f"Paper: {places[0]}"
    else:
        named = "Columns of papers: " + "; ".join(
            f"{number} {place}" for number, place in enumerate(places, start=1)
        )
    return f"{named}; as printed there, not measured here."
