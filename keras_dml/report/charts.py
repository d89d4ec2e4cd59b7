"""Draws the charts of a page: training curves, histograms, the spectrum."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation.index.spaces import Space, metric_of
from keras_dml.evaluation.labels import Relevance
from keras_dml.plotting import (
    COLORS,
    DASHES,
    GRAY,
    NEGATIVE,
    POSITIVE,
    styled,
    svg,
)
from keras_dml.report.thumbnails import data_uri
from keras_dml.run.history import History

BINS = 80
MAX_ROWS = 2000
ROWS_AT_A_TIME = 256
MOST_LINES = 8


class _Kind(NamedTuple):
    """A chart of the history: its columns begin with the prefixes."""

    name: str
    prefixes: tuple[str, ...]
    meaning: str
    logarithmic: bool = False


_CHARTS = (
    _Kind(
        "Loss",
        ("loss", "val_loss"),
        "What training lowers. Its size says little; that it falls, and goes "
        "on falling at the end, says that longer training may help.",
    ),
    _Kind(
        "Validation",
        ("val_recall", "val_r_precision", "val_map", "val_mrr"),
        "The metrics above on validation images, 1 at best.",
    ),
    _Kind(
        "Learning rates",
        ("learning_rate",),
        "How far a step moves each group of weights, by the schedule.",
        logarithmic=True,
    ),
    _Kind(
        "Temperature",
        ("temperature",),
        "What similarities are divided by before the softmax: the lower, the "
        "more the hardest images weigh.",
        logarithmic=True,
    ),
    _Kind(
        "Effective dimension",
        ("val_effective_dim",),
        "How many directions the embeddings of validation images spread "
        "over. A fall to a few means that they collapse.",
    ),
)


def training_curves(
    history: History, monitor: str, selected: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Draws the columns of `history.csv` by epoch.

    Args:
        history: The epochs of the run.
        monitor: The column that chooses the epoch, such as `val_map@r`.
        selected: Whether `monitor` chose the epoch of the kept weights.

    Returns:
        Tuple of the number of epochs and one dict of name, meaning, chart and
        description for each kind of column that the file has.
    """
    kept = history.best_epoch(monitor) if selected else None
    drawn = []
    for kind in _CHARTS:
        columns = history.starting_with(*kind.prefixes)
        if columns:
            meaning = kind.meaning
            if len(columns) > MOST_LINES:
                # As many groups as a network has blocks: their names would
                # cover the lines.
                names = np.array([*columns])
                spread = np.linspace(0, len(names) - 1, MOST_LINES).round()
                meaning += f" Drawn are {MOST_LINES} of {len(names)}."
                columns = {
                    name: columns[name] for name in names[spread.astype(int)]
                }
            uri = curves(
                columns, history.starts, logarithmic=kind.logarithmic, kept=kept
            )
            drawn.append(
                {
                    "name": kind.name,
                    "meaning": meaning,
                    "uri": uri,
                    "alt": _in_words(columns),
                }
            )
    return len(history), drawn


def _in_words(columns: dict[str, np.ndarray]) -> str:
    """Describes a chart for readers who cannot see it."""
    sentences = []
    for name, values in columns.items():
        finite = values[np.isfinite(values)]
        sentences.append(
            f"{name} goes from {finite[0]:.4g} to {finite[-1]:.4g}"
        )
    return "; ".join(sentences) + "."


def drawn_epochs(values: np.ndarray, logarithmic: bool) -> np.ndarray:
    """Returns the epochs whose value can be drawn: a rate of 0 has no log.

    >>> drawn_epochs(np.array([0.1, np.nan, 0.0]), logarithmic=True)
    array([0])
    """
    there = np.isfinite(values)
    return np.flatnonzero(there & (values > 0) if logarithmic else there)


def curves(
    columns: Mapping[str, np.ndarray],
    phases: Sequence[tuple[int, str]],
    *,
    logarithmic: bool = False,
    kept: int | None = None,
) -> str:
    """Draws values by epoch, one line a column.

    Args:
        columns: Dict of names to float arrays `(epochs,)`, NaN where missing.
        phases: First epoch and name of each phase, marked by a line.
        logarithmic: Whether the axis of the values is logarithmic. Defaults
            to `False`.
        kept: Integer, the epoch whose weights were kept. Defaults to `None`.

    Returns:
        The chart as a data URI.
    """
    with styled():
        figure, axes = _axes()
        for number, (name, values) in enumerate(columns.items()):
            epochs = drawn_epochs(values, logarithmic)
            marker = "o" if len(epochs) < 30 else None
            axes.plot(
                epochs + 1,
                values[epochs],
                label=name,
                color=COLORS[number % len(COLORS)],
                # Dashes leave gaps, so that both of two equal curves show.
                linestyle=DASHES[number % len(DASHES)],
                marker=marker,
                markersize=3,
            )
        if logarithmic:
            axes.set_yscale("log")
        marks = [
            (start + 0.5, 1, f" {name}", GRAY, ":", "left")
            for start, name in phases
            if len(phases) > 1
        ]
        if kept is not None:
            marks.append((kept + 1, 0, "kept ", POSITIVE, "-", "right"))
        for epoch, height, text, color, dashes, side in marks:
            axes.axvline(epoch, color=color, linestyle=dashes, linewidth=1)
            axes.annotate(
                text,
                (epoch, height),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                color=color,
                va="bottom",
                ha=side,
            ).set_in_layout(False)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        # A long name is cut at the edge; it does not push the axes away.
        axes.legend().set_in_layout(False)
        return _svg(figure)


def histograms(
    edges: np.ndarray, positive: np.ndarray, negative: np.ndarray, name: str
) -> str:
    """Draws similarities of pairs of one class and of different classes.

    Args:
        edges: Float array `(bins + 1,)`.
        positive: Float array `(bins,)`, shares of the pairs of one class.
        negative: Float array `(bins,)`, shares of the other pairs.
        name: The label of the axis.
    """
    with styled():
        figure, axes = _axes()
        for shares, label, color, hatch in (
            (negative, "different classes", NEGATIVE, "//"),
            (positive, "one class", POSITIVE, None),
        ):
            axes.stairs(shares, edges, color=color, label=label)
            axes.stairs(
                shares, edges, fill=True, alpha=0.25, color=color, hatch=hatch
            )
        axes.set_xlabel(name)
        axes.set_ylabel("share of pairs")
        axes.legend()
        return _svg(figure)


def spectrum(shares: np.ndarray) -> str:
    """Draws the share of the variance along each principal direction.

    Args:
        shares: Float array `(dim,)`, largest first.
    """
    with styled():
        figure, axes = _axes()
        axes.plot(np.arange(1, len(shares) + 1), shares, color=COLORS[0])
        if shares[0] > 0:
            axes.set_yscale("log")
            least = max(float(shares[0]) * 1e-8, float(shares.min()) / 2)
            axes.set_ylim(bottom=least)
        axes.set_xlabel("direction")
        axes.set_ylabel("share of variance")
        return _svg(figure)


def _axes():
    # No ground: the page has a light one or a dark one. And so small that text
    # is still read on a phone.
    figure = Figure((5.2, 2.6), layout="constrained", facecolor="none")
    axes = figure.subplots()
    axes.set_facecolor("none")
    return figure, axes


def _svg(figure: Figure) -> str:
    return data_uri(svg(figure), "image/svg+xml")


def similarity_shares(
    embeddings: EmbeddingSet, normalize: bool, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes histograms of the similarities of pairs, each of sum 1.

    It compares at most 2,000 images, drawn at random, with all others.

    Args:
        embeddings: `EmbeddingSet`.
        normalize: Whether similarities are cosines; otherwise they are
            negative Euclidean distances.
        seed: Integer. Defaults to `0`.

    Returns:
        Tuple of the edges of the bins, the shares of the pairs of one class
        (zeros if there are no such pairs) and those of different classes.
    """
    space = Space.fit(embeddings.embeddings, metric_of(normalize))
    rows = space.transform(embeddings.embeddings)
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(len(rows))[:MAX_ROWS]
    squares = np.einsum("ij,ij->i", rows, rows)
    longest = float(np.sqrt(squares.max())) or 1.0
    low, high = (-1.0, 1.0) if normalize else (-2 * longest, 0.0)
    edges = np.linspace(low, high, BINS + 1)
    counts = np.zeros((2, BINS))
    labels = embeddings.labels
    relevance = Relevance.of(labels[drawn], len(drawn), labels, len(labels))
    for start in range(0, len(drawn), ROWS_AT_A_TIME):
        block = drawn[start : start + ROWS_AT_A_TIME]
        values = rows[block] @ rows.T
        if not normalize:
            squared = squares[block][:, None] + squares - 2 * values
            values = -np.sqrt(np.maximum(squared, 0))
        values = np.clip(values, low, high)
        same = relevance.block(start, start + len(block))
        different = ~same
        same[np.arange(len(block)), block] = False
        for kind, chosen in enumerate((same, different)):
            counts[kind] += np.histogram(values[chosen], edges)[0]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return edges, shares[0], shares[1]
