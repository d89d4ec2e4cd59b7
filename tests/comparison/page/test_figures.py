import numpy as np
import pytest

from keras_dml.comparison.page.figures import (
    quality_by_arm,
    quality_by_factor,
    quality_by_size,
    swept_factors,
)
from keras_dml.comparison.summary import summarize
from tests.comparison.made_up import record, unfinished
from tests.comparison.pictures import check_legible, texts

BACKBONES = ("small_cnn", "resnet50")


def by_size(num_arms=3, dims=(64, 128, 512), seeds=3, backbones=BACKBONES):
    generator = np.random.default_rng(0)
    return [
        record(
            f"recipe_{arm}",
            seed,
            0.5 + 0.01 * (arm % 5) + 0.005 * generator.normal(),
            dim=dim,
            backbone=backbone,
        )
        for backbone in backbones
        for arm in range(num_arms)
        for dim in dims
        for seed in range(seeds)
    ]


def swept(factor, values, lines=("a",), dims=(64,), **factors):
    return [
        record(
            f"{line}, {value}",
            seed,
            0.5 + 0.01 * place + 0.001 * seed,
            line=line,
            dim=dim,
            factors={factor: value} | factors,
        )
        for line in lines
        for place, value in enumerate(values)
        for dim in dims
        for seed in range(2)
    ]


def names(figure):
    return [name for name, _ in texts(figure)]


@pytest.mark.parametrize("num_arms", [1, 25])
def test_sizes_are_legible_with_few_and_many_arms(num_arms):
    figure = quality_by_size(by_size(num_arms), "map@r")
    check_legible(figure)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        assert len(axes.containers) == num_arms
    seen = names(figure)
    for arm in range(num_arms if num_arms > 1 else 0):
        assert seen.count(f"recipe_{arm}") == 2


def test_error_bars_are_the_intervals_of_the_means():
    records = by_size(1, backbones=["small_cnn"])
    figure = quality_by_size(records, "map@r")
    (axes,) = figure.axes
    (container,) = axes.containers
    line, _, (bars,) = container
    for place, dim in enumerate((64, 128, 512)):
        values = [run.after["map@r"] for run in records if run.dim == dim]
        expected = summarize(values)
        assert line.get_ydata()[place] == pytest.approx(expected.mean)
        segment = bars.get_segments()[place]
        np.testing.assert_allclose(segment[:, 1], [expected.low, expected.high])
        np.testing.assert_allclose(segment[:, 0], dim)


def test_one_run_has_no_error_bars_and_says_so():
    figure = quality_by_size(by_size(2, seeds=1), "map@r")
    assert "one repetition each: no error bars" in names(figure)


def test_one_size_is_no_figure():
    assert quality_by_size(by_size(dims=[64]), "map@r") is None
    assert quality_by_size([unfinished("a", 0, "failed")], "map@r") is None


def test_concatenated_folds_are_no_size():
    records = [record(fold=fold) for fold in range(3)]
    assert (
        quality_by_size([*records, record(dim=192, concatenated=3)], "map@r")
        is None
    )


@pytest.mark.parametrize(
    "values, scale",
    [
        ([0.01, 0.1, 1.0], "log"),
        ([1, 20], "linear"),
        ([1, 21], "log"),
        ([0, 1, 100], "linear"),
        ([-1.0, 1.0, 30.0], "linear"),
    ],
)
def test_wide_positive_numbers_are_logarithmic(values, scale):
    figure = quality_by_factor(
        swept("loss.scale", values), "map@r", "loss.scale"
    )
    (axes,) = figure.axes
    assert axes.get_xscale() == scale
    assert axes.get_xlabel() == "loss.scale"
    check_legible(figure)
    if scale == "log":
        assert {f"{value:g}" for value in values} <= set(names(figure))


def test_many_values_have_few_ticks():
    values = list(range(101, 141))
    figure = quality_by_factor(swept("model.k", values), "map@r", "model.k")
    check_legible(figure)
    assert 2 < sum(name.isdigit() for name in names(figure)) < 20


@pytest.mark.parametrize(
    "values",
    [["max", "average"], [True, False], [None, 1.0], [[1, 2], [3]]],
)
def test_what_is_no_number_is_bars(values):
    factor = "losses.0.name_of_a_long_setting"
    records = swept(factor, values, ("a", "b"), (64, 128))
    figure = quality_by_factor(records, "map@r", factor)
    check_legible(figure)
    (axes,) = figure.axes
    assert axes.get_title(loc="left").endswith(f"from scratch: {factor}")
    assert axes.get_xlim()[0] == 0
    bars = [patch for patch in axes.patches if patch.get_width()]
    assert len(bars) == 8
    seen = names(figure)
    assert {str(value) for value in values} <= set(seen)
    assert seen.count("0.500  a, 64-d") == 1


def test_lines_differ_by_what_else_is_swept():
    records = swept("x.k", [1, 2], margin=0.1) + swept(
        "x.k", [1, 2], margin=0.2
    )
    assert swept_factors(records) == ["x.k", "margin"]
    figure = quality_by_factor(records, "map@r", "x.k")
    check_legible(figure)
    assert {"a, margin 0.1", "a, margin 0.2"} <= set(names(figure))
    assert quality_by_factor(records, "map@r", "unknown") is None


def test_networks_have_panels_of_their_own():
    records = swept("x.k", [1, 2])
    records += [
        record("a", value=0.9, factors={"x.k": k}, source="grocery")
        for k in (1, 2)
    ]
    figure = quality_by_factor(records, "map@r", "x.k")
    check_legible(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.split(",")[0] for title in titles] == ["omniglot", "grocery"]


@pytest.mark.parametrize("num_arms", [1, 25])
def test_arms_are_sorted_with_the_best_at_the_top(num_arms):
    records = by_size(num_arms, dims=(64, 128), backbones=BACKBONES[:1])
    figure = quality_by_arm(records, "map@r")
    check_legible(figure)
    assert len(figure.axes) == 2
    for axes in figure.axes:
        widths = [patch.get_width() for patch in axes.patches]
        assert widths == sorted(widths, reverse=True)
        assert axes.yaxis_inverted()
    assert quality_by_arm([unfinished("a", 0, "to do")], "map@r") is None


def test_titles_have_no_marks_of_code():
    records = [record(arm, weights="imagenet") for arm in "ab"]
    seen = " ".join(names(quality_by_arm(records, "map@r")))
    assert "weights imagenet" in seen
    assert "`" not in seen


def test_long_names_stay_inside():
    long = "a_name_that_goes_on_for_longer_than_names_should_go_on"
    records = [
        record(f"{long}_{arm}", value=0.5, dim=dim, source=long, backbone=long)
        for arm in "ab"
        for dim in (64, 128)
    ]
    check_legible(quality_by_arm(records, "map@r"))
    check_legible(quality_by_size(records, "map@r"))


def test_long_intervals_do_not_flatten_the_rest():
    records = [
        record(arm, seed, value + spread * seed, dim=dim)
        for arm, value, spread in (("a", 0.5, 0.001), ("b", 0.55, 0.1))
        for dim in (64, 128)
        for seed in range(2)
    ]
    figure = quality_by_size(records, "map@r")
    low, high = figure.axes[0].get_ylim()
    assert low > 0.35 and high < 0.75
