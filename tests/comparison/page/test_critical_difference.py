import numpy as np
import pytest

from keras_dml.comparison.page.critical_difference import (
    critical_difference_diagram,
)
from keras_dml.comparison.ranks import rank_arms
from keras_dml.plotting import COLORS
from tests.comparison.deck_tournament import ARMS, RECALL_AT_1
from tests.comparison.pictures import check_legible, texts


def ranked(num_arms, num_blocks, spread=0.5):
    generator = np.random.default_rng(num_arms)
    quality = generator.normal(size=num_arms)
    scores = quality + spread * generator.normal(size=(num_blocks, num_arms))
    names = [f"recipe_{number}" for number in range(num_arms)]
    names[0] += "_model.pooling=average_loss.temperature=0.05"
    return rank_arms(scores, names)


def bars(figure):
    """Ends of the bars, in ranks."""
    (axes,) = figure.axes
    axis = next(line for line in axes.lines if line.get_color() == "black")
    assert len(set(axis.get_ydata())) == 1
    start, stop = axis.get_xdata()
    numbers = [int(name) for name, _ in texts(figure) if name.isdigit()]
    count = max(numbers)
    return sorted(
        tuple(
            1 + (end - start) / (stop - start) * (count - 1)
            for end in line.get_xdata()
        )
        for line in axes.lines
        if line.get_color() == COLORS[1]
    )


@pytest.mark.parametrize("num_arms", [2, 4, 25])
@pytest.mark.parametrize("num_blocks", [3, 40])
def test_it_is_legible_with_few_and_many_arms(num_arms, num_blocks):
    ranks = ranked(num_arms, num_blocks)
    figure = critical_difference_diagram(ranks, "map@r")
    check_legible(figure)
    names = [name for name, _ in texts(figure)]
    for arm, mean in zip(ranks.arms, ranks.mean, strict=True):
        assert f"{arm}  {mean:.2f}" in names


def test_equal_ranks_are_legible():
    ranks = rank_arms(np.ones((4, 12)))
    figure = critical_difference_diagram(ranks, "map@r")
    check_legible(figure)


def test_bars_join_the_groups():
    ranks = rank_arms(RECALL_AT_1, ARMS)
    figure = critical_difference_diagram(ranks, "recall@1")
    check_legible(figure)
    expected = [(ranks.mean[a], ranks.mean[b]) for a, b in ranks.groups]
    assert len(expected) == 4
    # The bars reach a little over the lines that they join.
    np.testing.assert_allclose(bars(figure), expected, atol=0.1)


def test_the_ruler_is_as_long_as_the_critical_difference():
    ranks = rank_arms(RECALL_AT_1, ARMS)
    figure = critical_difference_diagram(ranks, "recall@1")
    (axes,) = figure.axes
    axis, *others = [line for line in axes.lines if line.get_color() == "black"]
    ruler = next(
        line
        for line in others
        if len(set(line.get_ydata())) == 1 and len(set(line.get_xdata())) == 2
    )
    share = np.ptp(ruler.get_xdata()) / np.ptp(axis.get_xdata())
    assert share * 9 == pytest.approx(ranks.critical_difference)
    names = [name for name, _ in texts(figure)]
    assert "critical difference 3.91" in names


@pytest.mark.parametrize(
    "num_blocks, text",
    [
        (1, "one block: no critical difference"),
        (2, "critical difference 3.32, wider than the axis"),
    ],
)
def test_few_blocks_are_told(num_blocks, text):
    ranks = ranked(4, num_blocks)
    figure = critical_difference_diagram(ranks, "map@r")
    check_legible(figure)
    assert text in [name for name, _ in texts(figure)]
    assert len(bars(figure)) == (num_blocks > 1)
