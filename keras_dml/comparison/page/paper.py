"""Numbers that papers print, to stand beside what is measured."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from keras_dml.comparison.experiment import by_arm
from keras_dml.comparison.records import RunRecord
from keras_dml.wording import metric_title


class PaperValue(Protocol):
    """One number of a paper.

    Args:
        arm: The arm, or line of arms, that it belongs to.
        metric: Name of the metric.
        value: Float, as printed.
        where: Where it is printed, such as `"ProxyNCA++, Table 7"`.
        source: What data it is of.
        backbone: The network, or `None` for any.
        dim: The embedding size, or `None` for any.
    """

    @property
    def arm(self) -> str: ...

    @property
    def metric(self) -> str: ...

    @property
    def value(self) -> float: ...

    @property
    def where(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def backbone(self) -> str | None: ...

    @property
    def dim(self) -> int | None: ...


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
    values: Iterable[PaperValue],
    runs: Sequence[RunRecord],
    metrics: Sequence[str],
) -> list[PaperColumn]:
    """Columns for those arms and metrics that a table has.

    Values of other data are left out where any are of the table's own; a plan
    that is run on data of one's own shows them all.

    Args:
        values: Printed numbers.
        runs: Runs of the table, of one network on the same data.
        metrics: Metrics of the table.
    """
    arms = {arm: {arm, own[0].line} for arm, own in by_arm(runs).items()}
    source, backbone = runs[0].source, runs[0].backbone
    values = list(values)
    known = any(value.source == source for value in values)
    cells: dict[tuple[str, str], dict[tuple[str, int | None], str]] = {}
    for value in values:
        if (known and value.source != source) or (
            value.backbone not in (None, backbone)
        ):
            continue
        place = f"{value.where.rstrip('.')} ({value.source})"
        for arm, names in arms.items():
            if value.metric in metrics and value.arm in names:
                column = cells.setdefault((value.metric, place), {})
                column[arm, value.dim] = f"{value.value:g}"
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
