"""What the commands print on standard output."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

output = Console()


def say(sentence: str) -> None:
    """Prints a line as it is, however long."""
    output.print(sentence, highlight=False, markup=False, soft_wrap=True)


def print_gain(metrics: dict[str, Any]) -> None:
    """What training bought, over the features it started from."""
    kind = "classes seen in training" if metrics["seen"] else "unseen classes"
    source = Path(metrics["dataset"]).name
    table = Table(
        title=f"{source}, {metrics['recipe']}: {metrics['num_queries']:,} "
        f"queries, {metrics['test_classes']} {kind}"
    )
    table.add_column("metric")
    start_from = metrics["pretrained_features"]
    for column in (start_from, "untrained head", "trained", "gain"):
        table.add_column(column, justify="right")
    for name, after in metrics["after"].items():
        start, before = (
            metrics[part][name] for part in ("pretrained", "before")
        )
        table.add_row(
            name,
            f"{start:.4f}",
            f"{before:.4f}",
            f"{after:.4f}",
            f"{after - start:+.4f}",
        )
    output.print(table)
    if metrics["partial"]:
        output.print("The data set is incomplete: these numbers are partial.")


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints dicts of the same keys as a table."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    output.print(table)
