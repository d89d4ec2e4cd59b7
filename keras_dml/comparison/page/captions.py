"""Writes the captions that explain the tables."""

from collections.abc import Collection, Mapping, Sequence

from keras_dml.comparison.page.paper import PaperColumn, places_in_words
from keras_dml.comparison.ranks import RankTable
from keras_dml.comparison.records import (
    Experiment,
    RunRecord,
    network_of,
)
from keras_dml.comparison.standings import Standing
from keras_dml.comparison.summary import (
    INTERVAL_IN_WORDS,
    LEVEL,
    STD_IN_WORDS,
    summarize_arms,
)
from keras_dml.wording import counted, listed, metric_title, spanned

# Explains paired differences and their intervals.
_PAIRED = (
    "Differences are paired. Over seeds: the 95 % interval by Student's t "
    "of the differences under the same seeds; folds of a seed are averaged "
    "first, and with one seed the folds are its repetitions. Over classes: "
    "the 95 % bootstrap interval of the differences on the same queries, "
    "averaged over runs, with test classes drawn anew."
)
FINDINGS_CAPTION = (
    f"{_PAIRED} Confirmed: both lie above zero. Contradicted: both lie below. "
    "Open: neither. Where one is missing, the other decides alone. Nothing is "
    "corrected for the number of claims."
)


def gaps_caption(
    found: Mapping[Experiment, Sequence[Standing]], metric: str
) -> str:
    """Writes the caption of a table of differences from the best arm."""
    best = ", ".join(
        dict.fromkeys(f"`{arms[0].arm}`" for arms in found.values())
    )
    return (
        f"{metric_title(metric)} of each arm minus that of the best, {best}. "
        f"{_PAIRED} Worse: both lie below zero. Open: more seeds or more test "
        "classes are needed to tell. Where one is missing, the other decides "
        "alone. The best of many is partly lucky, and nothing is corrected for "
        "the number of arms."
    )


def results_caption(
    runs: list[RunRecord],
    metrics: Sequence[str],
    paper: Sequence[PaperColumn],
    protocol: str,
) -> str:
    """Writes the caption of a table of results.

    Args:
        runs: The runs of the table: one network, one data set.
        metrics: Its metrics.
        paper: The columns of numbers printed in papers.
        protocol: A sentence on how epochs were chosen, or `""`.
    """
    dims = sorted({run.dim for run in runs})
    noun = "embedding size" if len(dims) == 1 else "embedding sizes"
    sentences = [
        f"{network_of(runs[0]).title}, {noun} {listed(dims)}.",
        f"{seeds_in_words(runs).capitalize()}.",
    ]
    if protocol:
        sentences.append(f"Protocol: {protocol.rstrip('.')}.")
    oracle = [run.oracle for run in runs]
    if any(oracle):
        which = "All results are" if all(oracle) else "Rows marked"
        sentences.append(
            f"{which} oracle: the epoch was chosen on the test classes."
        )
    sentences.append(_spread_in_words(runs, metrics))
    each = " of each size" if len(dims) > 1 else ""
    sentences.append(f"Bold: the best mean{each}.")
    if any(run.pretrained for run in runs):
        sentences.append(
            "Rows in parentheses are what nearest neighbors find without "
            "training."
        )
    if paper:
        sentences.append(places_in_words(paper))
    return " ".join(sentences)


def ranks_caption(ranks: RankTable, metric: str) -> str:
    """Writes the caption of a table of ranks.

    It says which metric ranked the arms, and which differences are
    significant.
    """
    count = counted(ranks.num_blocks, ranks.unit.removesuffix("s"))
    sentences = [
        f"Ranks by {metric_title(metric)} in {count}, 1 is the best; equal "
        "values share the average of their ranks."
    ]
    if ranks.unit == "experiments":
        sentences.append(
            "An experiment is one data set, network, weights and embedding "
            "size; arms are ranked by their mean in it."
        )
    else:
        sentences.append(
            f"There is one experiment, so its {ranks.unit} are ranked: this "
            f"says what to expect of other {ranks.unit}, not of other data or "
            "networks."
        )
    if ranks.num_blocks < 2:
        sentences.append("One is too few for a deviation or a test.")
    else:
        equal = ranks.friedman_p >= 1 - LEVEL
        sentences += [
            f"The deviation of the ranks is {STD_IN_WORDS}.",
            f"Friedman test: p = {ranks.friedman_p:.2g}"
            f"{', so the arms are not told apart' if equal else ''}.",
            f"Nemenyi's critical difference at {100 * LEVEL:g} %: "
            f"{ranks.critical_difference:.2f}.",
        ]
        if ranks.unit == "experiments":
            sentences.append(
                "Experiments on the same data are not independent, as both "
                "take them to be."
            )
    if ranks.blocks_left_out:
        left = counted(ranks.blocks_left_out, ranks.unit.removesuffix("s"))
        sentences.append(f"{left} left out, which not all arms finished.")
    if ranks.arms_left_out:
        arms = listed(f"`{arm}`" for arm in ranks.arms_left_out)
        sentences.append(f"Not ranked, sharing too few experiments: {arms}.")
    return " ".join(sentences)


def seeds_in_words(runs: Collection[RunRecord]) -> str:
    """Says which seeds runs have, and how many folds."""
    seeds = sorted({run.seed for run in runs})
    folds = {run.fold for run in runs} - {None}
    text = f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds)}"
    return f"{text}, {counted(len(folds), 'fold')}" if folds else text


def _spread_in_words(runs: list[RunRecord], metrics: Sequence[str]) -> str:
    repeated = [
        summary
        for metric in metrics
        for arms in summarize_arms(runs, metric).values()
        for summary in arms.values()
        if summary.count > 1
    ]
    if not repeated:
        return "One repetition each, so nothing is known of the spread."
    units = {summary.unit for summary in repeated}
    counts = spanned([summary.count for summary in repeated])
    text = f"± is {STD_IN_WORDS} over {counts} {listed(sorted(units))}"
    if "folds" in units:
        text += " of one seed"
    folds = [summary.folds for summary in repeated if summary.folds]
    if folds:
        text += f", each the mean of its {spanned(folds)} folds"
    return f"{text}. In the CSV, low and high are {INTERVAL_IN_WORDS}."
