"""Prints the results of the commands on standard output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_dml.cli.next_steps import (
    from_scratch,
    steps_after_comparison,
    steps_after_export,
    steps_after_fit,
)
from keras_dml.cli.printing import print_rows, say, tell
from keras_dml.wording import filled, metric_meaning, metric_title

if TYPE_CHECKING:
    from keras_dml.api import Run
    from keras_dml.comparison.comparison import Comparison
    from keras_dml.evaluation import Measured
    from keras_dml.export.exporting import ExportResult
    from keras_dml.search.result import SearchResult

_YES_OR_NO = {True: "yes", False: "no", None: None}
# How exports are compared, in words; the first three have units.
_AMOUNTS = {
    "megabytes": "megabytes",
    "batch_1_ms": "milliseconds for an image",
    "batch_32_ms": "milliseconds for 32 images",
}
_MEASURES = {
    **_AMOUNTS,
    "mean_cosine": "likeness to trained, mean",
    "worst_cosine": "likeness to trained, worst",
    "index_recall@1": "R@1 by the index",
}
# The headings of columns that are not named after a format.
_COLUMNS = {"embedder": "trained"}
# Stands below the table of a run, for people who have not met these metrics.
_METRICS_IN_WORDS = (
    "In the table, a query is a test image that is looked up among the others. "
    "All metrics go from 0 to 1; higher is better. MAP@R (mean average "
    "precision): if a query has 5 others of its class, the share of these "
    "among its 5 nearest; early ones count more. R-precision: the same share, "
    "all places counting alike. R@1 (recall): the share of queries whose "
    "nearest image is of their class; for other R@k, one of the k nearest. MRR "
    "(mean reciprocal rank): the mean of 1/rank of the first image of the "
    "class. "
)
_GAIN_IN_WORDS = (
    "On other classes like these, the true gain lies in the interval with 95 % "
    "confidence."
)
_ARMS_IN_WORDS = (
    "An arm is one of the variants that are compared; the leading one "
    "stands first. A query is a test image that is looked up among the others."
)
_DEVIATION_IN_WORDS = (
    "After ± stands the standard deviation over the runs of an arm."
)
_GAPS_IN_WORDS = (
    "The gap is an arm's value minus that of the leading arm, on the same "
    "queries and seeds; a seed sets the random numbers of a training. With "
    "other {drawn} the gap would lie in {interval} with 95 % confidence. "
    "Worse: {below} below zero. Open: zero is inside, so it is not known which "
    "is better; more seeds or test classes may tell. Until then, use either."
)
# The parts of headings of intervals, and what would be drawn again.
_DRAWN = {"seeds": "seeds", "folds": "folds", "classes": "test classes"}
_EXPORTS_IN_WORDS = (
    "The trained network, in Keras, turns an image into numbers, its "
    "embedding. {litert}Likeness is the cosine similarity of the embeddings "
    "that it and an export make of an image: 1 means the same. A query is a "
    "test image that is looked up among the others. R@1 is {recall}. MAP@R is "
    "{map}. R@1 and MAP@R change a little where rounding swaps two images that "
    "are about equally near. Times are of this computer, others differ."
)
_USE_IN_WORDS = (
    "manifest.json in its folder says which images go in{match} what comes "
    "out{until}. Embed the images that you know once, and keep their "
    "embeddings: a photo is most like the one whose embedding {nearest}."
)
# How a distance is called, and which embedding is the nearest.
_NEAREST_IN_WORDS = {
    "cosine": (
        "1 minus the cosine similarity",
        "has the highest cosine similarity to its own",
    ),
    "euclidean": (
        "the Euclidean one",
        "has the smallest Euclidean distance to its own",
    ),
}
_LITERT_IN_WORDS = (
    "litert is for LiteRT, formerly TensorFlow Lite, which runs on phones. "
)
_INDEX_IN_WORDS = (
    "By the index: among the images that the artifact's own search returns. "
    "Share found: how many of the true nearest are among those."
)
_RAW_PIXELS_IN_WORDS = (
    "Raw pixels: the photos themselves, compared pixel by pixel."
)
_PRETRAINED_IN_WORDS = (
    "Pretrained backbone: the network as it came, given photos of {size} x "
    "{size} pixels, about their own size."
)


def print_run(run: "Run") -> None:
    """Prints what a run gained, what to conclude, and what to do next."""
    rows = run.rows()
    print_rows(run.tested(), rows)
    for sentence in run.conclusion():
        tell(sentence)
    say("")
    # Classes that trained are no sample of others.
    sampled = not run.metrics["seen"] and any(
        row.get("95 % interval", "-") != "-" for row in rows
    )
    if from_scratch(run):
        tell(_RAW_PIXELS_IN_WORDS)
    elif size := run.metrics.get("natural_size"):
        tell(_PRETRAINED_IN_WORDS.format(size=size))
    tell(_METRICS_IN_WORDS + (_GAIN_IN_WORDS if sampled else ""))
    if run.metrics["partial"]:
        say("The data set is incomplete: these numbers are partial.")
    say(f"\nRun folder: {run.folder.path}")
    if run.final is not None:
        classes = run.final.metrics["train_classes"]
        what = f"Trained on all {classes} classes"
        if run.kept:
            what = f"The pretrained network, for all {classes} classes alike"
        elif not run.trained:
            what = f"The start without training, from all {classes} classes"
        say(f"{what}: {run.final.folder.path}")
        tell("What it gains on new classes is above: none is left to tell.")
    _print_steps(steps_after_fit(run))


def _print_steps(steps: Iterable[tuple[str, str]]) -> None:
    lines = [
        f"{filled(aim, first='  ', indent='  ')}\n{command}"
        for aim, command in steps
    ]
    if lines:
        say("\n".join(["Next:", *lines]))


def print_evaluation(measured: "Measured") -> None:
    """Prints the metrics of embeddings, and the optional results."""
    rows = [
        {**row, "metric": metric_title(row["metric"])}
        for row in measured.rows()
    ]
    print_rows(measured.exact.counts(), rows)
    if measured.approximation is not None:
        print_rows(
            "Share of the K nearest that the index finds",
            [
                {"metric": name, "value": share}
                for name, share in measured.approximation.ann_recall.items()
            ],
        )
        tell("The true nearest are found by exact search.")
    classes = measured.class_rows()
    if classes:
        print_rows(f"{len(classes):,} classes", classes)


def print_answers(result: "SearchResult") -> None:
    """Prints the neighbors of each image, and how reliable matches are."""
    if result.source is None:
        tell(
            "Searching the run's test images, named by their paths in its data."
        )
    for answer in result.answers:
        if not answer.neighbors:
            say(f"{answer.path}: the gallery holds no other image.")
            continue
        verdict = "no match; " if answer.match is False else ""
        print_rows(
            f"{answer.path}: {verdict}nearest first, among "
            f"{result.searched(answer)}",
            [
                {
                    "class": one.label,
                    "distance": one.distance,
                    "match": _YES_OR_NO[one.accepted],
                    "image": one.id,
                }
                for one in answer.neighbors
            ],
        )
    if result.threshold is not None:
        tell(result.threshold.meaning)
        found = result.threshold.threshold
        what = "pairs of different classes"
        if found.decision == "nearest":
            what = "images of classes that are not in the gallery"
        tell(
            f"`--max-false-match-rate` sets how many {what} may match, here "
            f"{found.target_fmr:g}, that is {100 * found.target_fmr:g} %; a "
            "smaller one needs a training on more classes."
        )
    shown = max((len(one.neighbors) for one in result.answers), default=0)
    if shown:
        hints = []
        if shown < result.num_references - 1:
            hints.append(f"`--k {4 * shown}` shows more, ")
        if not result.source:
            hints.append("`--gallery FOLDER` searches a folder, ")
        last = "`--picture FILE.png` draws what was found."
        tell(f"{''.join(hints)}{'and ' * bool(hints)}{last}")


def print_comparison(result: "Comparison", again: Sequence[str]) -> None:
    """Prints the ranking of a comparison, or what it would train.

    Args:
        result: The comparison.
        again: The words of its command, without its seeds.
    """
    if result.report is None:
        statuses = {record.run: record.status for record in result.records}
        print_rows(
            f"Runs, in {result.folder}/runs, and their status",
            [{"run": run, "status": statuses[run]} for run in statuses],
        )
        say("Nothing was trained. Leave out --dry-run to train these runs.")
        return
    tables = result.rankings()
    for title, rows in tables:
        print_rows(title, rows)
    for sentence in result.conclusions():
        tell(sentence)
    say("")
    if tables:
        tell(_ARMS_IN_WORDS)
    for metric in result.metrics if tables else ():
        tell(f"{metric_title(metric)} is {metric_meaning(metric)}.")
    cells = (
        str(cell) for _, rows in tables for row in rows for cell in row.values()
    )
    if any("±" in cell for cell in cells):
        tell(_DEVIATION_IN_WORDS)
    headings = " ".join(key for _, rows in tables for key in rows[0])
    drawn = [one for key, one in _DRAWN.items() if key in headings]
    if drawn:
        words = " or ".join(drawn)
        several = len(drawn) > 1
        tell(
            _GAPS_IN_WORDS.format(
                drawn=words,
                interval="each interval" if several else "the interval",
                below="both intervals lie" if several else "the interval lies",
            )
        )
    say(f"\nReport as text: {result.report}")
    say(f"Run folders: {result.folder}/runs")
    say("  named by images, network, numbers in an embedding, arm and seed")
    _print_steps(steps_after_comparison(result, again))


def print_artifacts(result: "ExportResult", options: Mapping[str, Any]) -> None:
    """Prints how exports with these options compare, a column for each."""
    names = [row["artifact"] for row in result]
    measures = [key for key in result[0] if key not in ("artifact", "images")]
    whole = "" if result.of is None else f" of {result.of:,} test"
    kind = " whose classes trained" if result.trained else ""
    print_rows(
        f"Compared on {result[0]['images']:,}{whole} images{kind}",
        [
            {
                "measure": _measure_title(key),
                **{
                    _COLUMNS.get(name, name): _rounded(key, row[key])
                    for name, row in zip(names, result, strict=True)
                },
            }
            for key in measures
        ],
    )
    for sentence in result.conclusions():
        tell(sentence)
    say("")
    tell(
        _EXPORTS_IN_WORDS.format(
            litert=_LITERT_IN_WORDS if "litert" in " ".join(names) else "",
            recall=metric_meaning("recall@1"),
            map=metric_meaning("map@r"),
        )
    )
    if "index_recall@1" in measures:
        tell(_INDEX_IN_WORDS)
    say("Exported:")
    for path in result.models:
        # Not wrapped: a path that is cut over two lines cannot be copied.
        say(f"  {path}")
    distance, nearest = _NEAREST_IN_WORDS[result.metric]
    until = f", and up to which distance, {distance}, two images match"
    tell(
        _USE_IN_WORDS.format(
            match="," if result.has_threshold else " and",
            until=until if result.has_threshold else "",
            nearest=nearest,
        )
    )
    _print_steps(steps_after_export(result, options))


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
