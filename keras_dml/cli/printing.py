"""Prints the results of the commands on standard output."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from keras_dml.wording import counted, metric_meaning, metric_title

if TYPE_CHECKING:
    from keras_dml.api import Run
    from keras_dml.comparison.comparison import Comparison
    from keras_dml.evaluation import Measured
    from keras_dml.export.exporting import ExportResult
    from keras_dml.search.search import SearchResult

output = Console()

_YES_OR_NO = {True: "yes", False: "no", None: None}
# How exports are compared, in words; the first three have units.
_AMOUNTS = {
    "megabytes": "megabytes",
    "batch_1_ms": "milliseconds for an image",
    "batch_32_ms": "milliseconds for 32 images",
}
_MEASURES = {
    **_AMOUNTS,
    "mean_cosine": "likeness to the embedder, mean",
    "worst_cosine": "likeness to the embedder, worst",
    "index_recall@1": "R@1 by the index",
}
# Stands below the table of a run, for people who have not met these metrics.
_METRICS_IN_WORDS = (
    "All are 1 at best. MAP@R: of the R nearest images, R being how many "
    "others of its class a query has, the share that is of its class; early "
    "ones count more. R-precision: the same without the order. R@K: the share "
    "of queries with an image of their class among the K nearest. MRR: the "
    "mean of 1/rank of the first image of the class. The interval holds the "
    "gain in 95 % of cases, were the test classes drawn again."
)
_ARMS_IN_WORDS = "An arm is one of the settings that are compared."
_GAPS_IN_WORDS = (
    "A gap compares the same queries of the same seeds. In 95 % of cases its "
    "interval would hold it, were the {drawn} drawn again. Better or worse: it "
    "lies above or below zero. Open: it holds zero; more {drawn} would tell."
)
# The parts of headings of intervals, and what would be drawn again.
_DRAWN = {"seeds": "seeds", "folds": "folds", "classes": "test classes"}
_EXPORTS_IN_WORDS = (
    "The embedder is the trained network in Keras. Likeness is the cosine of "
    "both embeddings of an image: 1 is equal, but for rounding. R@1 and MAP@R "
    "change where that swaps neighbors that are about as near."
)
_RAW_PIXELS_IN_WORDS = (
    "Raw pixels: the photos themselves, compared pixel by pixel."
)
# Lists fit a terminal of this width.
WIDTH = 80


def say(sentence: str) -> None:
    """Prints a line as it is, however long."""
    output.print(sentence, highlight=False, markup=False, soft_wrap=True)


def tell(sentence: str) -> None:
    """Prints a sentence, wrapped at the width of a terminal."""
    wraps = output.is_terminal
    output.print(sentence, highlight=False, markup=False, soft_wrap=not wraps)


def print_run(run: "Run") -> None:
    """Prints what a run gained, what to conclude, and what to do next."""
    print_rows(run.tested(), run.rows())
    tell(_METRICS_IN_WORDS)
    if any("raw pixels" in row for row in run.rows()):
        tell(_RAW_PIXELS_IN_WORDS)
    for sentence in run.conclusion():
        tell(sentence)
    if run.metrics["partial"]:
        say("The data set is incomplete: these numbers are partial.")
    say(f"\nRun folder: {run.folder.path}")
    if run.final is not None:
        say(
            f"Trained on all {run.final.metrics['train_classes']} classes: "
            f"{run.final.folder.path}"
        )
        tell("What it gains on new classes is above: none is left to tell.")
    say("Next:")
    for aim, command in _next_steps(run):
        say(f"  {aim}\n{command}")


def _command(*words: object) -> str:
    """Joins the words of a command; a long one goes on in a further line.

    An option stays beside its value.
    """
    lines, parts = ["   "], list(map(shlex.quote, map(str, words)))
    for place, part in enumerate(parts):
        beside = place > 0 and parts[place - 1].startswith("--")
        after = parts[place + 1 : place + 2] if part.startswith("--") else []
        length = len(" ".join([part, *after]))
        if not beside and len(lines[-1]) + length > WIDTH - 3:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" {part}"
    return "\n".join(lines)


def _next_steps(run: "Run") -> Iterator[tuple[str, str]]:
    """Yields what a person may do with a run, each with its command."""
    path = run.folder.path
    again = ("keras-dml", "fit", "--config", path)
    page = run.folder.report
    if page.is_file():
        yield "look at its page in a browser", f"    {page}"
    yield (
        "search with a photo",
        _command("keras-dml", "search", path, "PHOTO.jpg"),
    )
    if run.rising or run.undecided:
        minutes = run.config.minutes
        longer = (
            ("--minutes", f"{2 * minutes:g}")
            if minutes is not None
            else ("--epochs", 2 * len(run.history))
        )
        yield (
            "train longer, as validation still rose at the end"
            if run.rising
            else "train longer, for a gain that is more than chance",
            _command(*again, *longer, "--output", f"{path}-longer"),
        )
    if run.final is None and not run.metrics["seen"]:
        yield (
            f"train once more, on all classes, to ship {path}/final; {path} "
            "stays as it is",
            _command(*again, "--output", path, "--resume", "--final", "all"),
        )
    shipped = path if run.final is None else run.final.folder.path
    phone = ("--format", "litert", "--quantize", "int8")
    yield (
        "make it small for a phone, with numbers of 8 bits",
        _command("keras-dml", "export", shipped, *phone),
    )


def print_evaluation(measured: "Measured") -> None:
    """Prints the metrics of embeddings, and the optional results."""
    print_rows(measured.exact.counts(), measured.rows())
    if measured.approximation is not None:
        print_rows(
            "Share of the K nearest that the index finds",
            [
                {"metric": name, "value": share}
                for name, share in measured.approximation.ann_recall.items()
            ],
        )
    rows = measured.class_rows()
    if rows:
        print_rows(f"{len(rows):,} classes", rows)


def print_answers(result: "SearchResult") -> None:
    """Prints the neighbors of each image, and how reliable matches are."""
    for answer in result.answers:
        if not answer.neighbors:
            say(f"{answer.path}: the gallery holds no other image.")
            continue
        verdict = "no match" if answer.match is False else "nearest"
        print_rows(
            f"{answer.path}: {verdict} among {result.searched(answer)}",
            [
                {
                    "label": one.label,
                    "distance": one.distance,
                    "match": _YES_OR_NO[one.accepted],
                    "id": one.id,
                }
                for one in answer.neighbors
            ],
        )
    if result.threshold is not None:
        tell(result.threshold.meaning)
        tell("`--max-false-match-rate` sets another threshold.")
    if result.source is None:
        tell("`--gallery` searches the photos of another folder.")


def print_comparison(result: "Comparison") -> None:
    """Prints the ranking of a comparison, or what it would train."""
    if result.report is None:
        statuses = {record.run: record.status for record in result.records}
        print_rows(
            counted(len(result.runs), "run"),
            [{"run": run, "status": statuses[run]} for run in statuses],
        )
        say("Nothing was trained. Leave out --dry-run to train what is to do.")
        return
    tables = result.rankings()
    for title, rows in tables:
        print_rows(title, rows)
    for metric in result.metrics if tables else ():
        tell(f"{metric_title(metric)} is {metric_meaning(metric)}.")
    if tables:
        tell(_ARMS_IN_WORDS)
    headings = " ".join(key for _, rows in tables for key in rows[0])
    if "verdict" in headings.split():
        drawn = [one for key, one in _DRAWN.items() if key in headings]
        tell(_GAPS_IN_WORDS.format(drawn=" or ".join(drawn)))
    for sentence in result.conclusions():
        tell(sentence)
    say(f"Page, for a browser: {result.page}")
    say(f"The same as text: {result.report}")


def print_artifacts(result: "ExportResult") -> None:
    """Prints how exports compare with their embedder, a column for each."""
    measures = [key for key in result[0] if key not in ("artifact", "images")]
    whole = "" if result.of is None else f" of {result.of:,} test"
    print_rows(
        f"Compared on {result[0]['images']:,}{whole} images",
        [
            {
                "measure": _measure_title(key),
                **{row["artifact"]: _rounded(key, row[key]) for row in result},
            }
            for key in measures
        ],
    )
    tell(_EXPORTS_IN_WORDS)
    tell(
        "Exported, with a manifest.json beside each that says what goes in and "
        "what comes out:"
    )
    for path in result.models:
        # Not wrapped: a path that is cut over two lines cannot be copied.
        say(f"  {path}")


def _measure_title(key: str) -> str:
    kind, _, k = key.partition("@")
    if kind == "ann_recall":
        nearest = "nearest" if k == "1" else f"{k} nearest"
        return f"share of the {nearest} found"
    return _MEASURES.get(key, metric_title(key))


def _rounded(measure: str, value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:.2f}" if measure in _AMOUNTS else f"{value:.4f}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))


def print_groups(groups: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Prints names with a sentence each, in groups, in 80 columns.

    Args:
        groups: Maps the title of each group to its names and sentences.
    """
    for title, lines in groups.items():
        say(_filled(title, "", ""))
        indent = max(len(name) for name, _ in lines) + 4
        for name, sentence in lines:
            first = f"  {name}".ljust(indent)
            say(_filled(sentence, first, " " * indent))
        say("")


def print_facts(facts: Mapping[str, str]) -> None:
    """Prints each text with its name, in 80 columns; skips empty texts."""
    for name, text in facts.items():
        if text:
            say(_filled(text, f"{name}: ", "  "))


def _filled(text: str, first: str, indent: str) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints dicts with the same keys as a table, below its title."""
    tell(title)
    table = Table()
    for column, value in rows[0].items():
        number = isinstance(value, float) or str(value).startswith(("+", "-"))
        side: JustifyMethod = "right" if number else "left"
        # Fold long text, do not cut it: users copy it from narrow windows.
        table.add_column(column, overflow="fold", justify=side)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    output.print(table)
