import time

import numpy as np
import pytest
from scipy import stats

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    Interval,
    bootstrap_intervals,
    paired_bootstrap,
)
from keras_dml.evaluation.statistics import bootstrap as bootstrap_module


def values(rows=60, seed=0):
    generator = np.random.default_rng(seed)
    found = generator.random(rows)
    found[[3, 17]] = np.nan
    return found


def naive_means(units, num_resamples, seed):
    """Means over drawn units, each an array of values, one after the other."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(units), size=(num_resamples, len(units)))
    return [np.concatenate([units[i] for i in row]).mean() for row in draws]


def widened(means, value, units, level):
    """As far from the value as Student's t has it."""
    upper = 0.5 + level / 2
    ratio = stats.t(units - 1).ppf(upper) / stats.norm.ppf(upper)
    return value + ratio * (units / (units - 1)) ** 0.5 * (means - value)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_against_loops(by_class, level):
    data, labels = values(), np.arange(60) % 9
    kept = ~np.isnan(data)
    units = [np.array([value]) for value in data[kept]]
    if by_class:
        units = [data[kept & (labels == label)] for label in range(9)]
    means = np.array(naive_means(units, 200, 4))
    means = widened(means, np.nanmean(data), len(units), level)
    tail = 50 * (1 - level)
    low, high = np.percentile(means, [tail, 100 - tail])
    interval = bootstrap_intervals(
        {"map@r": data}, labels if by_class else None, level, 200, 4
    )["map@r"]
    assert interval == Interval(
        pytest.approx(np.nanmean(data)),
        pytest.approx(low),
        pytest.approx(high),
        level,
        "classes" if by_class else "queries",
        200,
    )


@pytest.mark.parametrize("widen", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
def test_differences_against_loops(by_class, widen):
    first, labels = values(), np.arange(60) % 9
    second = first + np.random.default_rng(1).normal(0.02, 0.1, 60)
    kept = ~np.isnan(first)
    apart = first - second
    units = [np.array([value]) for value in apart[kept]]
    if by_class:
        units = [apart[kept & (labels == label)] for label in range(9)]
    means = np.array(naive_means(units, 300, 4))
    if widen:
        means = widened(means, np.nanmean(apart), len(units), 0.9)
    classes = labels if by_class else None
    found = paired_bootstrap(first, second, classes, 0.9, 300, 4, widen)
    assert found.difference == pytest.approx(np.nanmean(apart))
    assert [found.low, found.high] == pytest.approx(
        np.percentile(means, [5, 95]).tolist()
    )
    smaller = min((means <= 0).sum(), (means >= 0).sum())
    assert found.p_value == pytest.approx(2 * (1 + smaller) / 301)
    assert 0 < found.p_value < 1


def test_a_query_with_several_labels_counts_in_each_in_equal_parts():
    """Against loops over the drawn classes."""
    data = values()
    generator = np.random.default_rng(5)
    matrix = generator.random((60, 7)) < 0.3
    matrix[:, 0] |= ~matrix.any(axis=1)
    kept = ~np.isnan(data)
    draws = np.random.default_rng(4).integers(7, size=(200, 7))
    means = []
    for drawn in draws:
        weights = matrix[:, drawn].sum(axis=1) / matrix.sum(axis=1)
        means.append(np.average(data[kept], weights=weights[kept]))
    means = widened(np.array(means), np.nanmean(data), 7, 0.9)
    found = bootstrap_intervals({"map@r": data}, matrix, 0.9, 200, 4)["map@r"]
    assert [found.low, found.high] == pytest.approx(
        np.percentile(means, [5, 95]).tolist()
    )
    assert found.value == pytest.approx(np.nanmean(data))
    single = np.arange(60) % 9
    assert bootstrap_intervals({"a": data}, single) == bootstrap_intervals(
        {"a": data}, np.eye(9, dtype=bool)[single]
    )


def test_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    inside = 0
    for seed in range(300):
        data = generator.random(80) < 0.7
        interval = bootstrap_intervals(
            {"recall@1": data}, num_resamples=300, seed=seed
        )["recall@1"]
        inside += interval.low <= 0.7 <= interval.high
    assert 0.90 <= inside / 300 <= 0.98


@pytest.mark.parametrize("classes", [3, 5, 10, 20])
def test_intervals_of_few_classes_hold_the_truth_as_often(classes):
    """77 % of those of three classes did, and 86 % of those of five."""
    generator = np.random.default_rng(1)
    labels, inside = np.repeat(np.arange(classes), 10), 0
    for _ in range(400):
        apart = generator.normal(0, 1, classes)[labels]
        apart += generator.normal(0, 0.3, len(labels))
        zero = np.zeros(len(labels))
        found = paired_bootstrap(apart, zero, labels, num_resamples=300)
        inside += found.low <= 0 <= found.high
    assert 0.91 <= inside / 400 <= 0.99


def test_intervals_of_means_stay_within_what_a_metric_can_be():
    hits = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    found = bootstrap_intervals({"recall@1": hits}, [0, 0, 1, 1, 2, 2])
    assert 0 <= found["recall@1"].low < found["recall@1"].high == 1


def test_classes_give_wider_intervals_where_their_queries_agree():
    labels = np.arange(400) // 20
    data = np.random.default_rng(0).random(20)[labels]
    width = {}
    for unit, classes in (("queries", None), ("classes", labels)):
        found = bootstrap_intervals({"map@r": data}, classes)["map@r"]
        width[unit] = found.high - found.low
    # Twenty equal queries tell as much as one: sqrt(20) = 4.5.
    assert 3 < width["classes"] / width["queries"] < 6


def test_pairs_see_what_intervals_alone_do_not():
    first = values(400)
    second = first - 0.01
    alone = bootstrap_intervals({"first": first, "second": second})
    assert alone["first"].low < alone["second"].high
    found = paired_bootstrap(first, second)
    assert [found.low, found.high] == pytest.approx([0.01, 0.01])
    assert found.p_value == pytest.approx(2 / 1001)


def test_equal_results_do_not_differ():
    found = paired_bootstrap(values(), values())
    assert (found.low, found.difference, found.high) == (0, 0, 0)
    assert found.p_value == 1.0


def test_differences_are_antisymmetric():
    first, second = values(seed=1), values(seed=2)
    one = paired_bootstrap(first, second)
    other = paired_bootstrap(second, first)
    assert one.difference == -other.difference
    assert one.low == pytest.approx(-other.high)
    assert one.p_value == other.p_value


@pytest.mark.parametrize("widen", [False, True])
@pytest.mark.parametrize("num_resamples", [10, 200, 1000])
def test_how_far_the_p_value_agrees_with_the_interval(num_resamples, widen):
    for seed in range(60):
        generator = np.random.default_rng(seed)
        apart = generator.normal(0.55, 1, size=14)
        found = paired_bootstrap(
            apart,
            np.zeros(14),
            num_resamples=num_resamples,
            seed=seed,
            widen=widen,
        )
        if found.low > 0 or found.high < 0:
            assert found.p_value < 0.05 + 4 / num_resamples
        else:
            assert found.p_value >= 0.05


def test_seeds_and_blocks(monkeypatch):
    data = {"map@r": values(seed=1), "mrr": values(seed=2)}
    first = bootstrap_intervals(data, seed=1)
    assert first == bootstrap_intervals(data, seed=1)
    assert first != bootstrap_intervals(data, seed=2)
    monkeypatch.setattr(bootstrap_module, "DRAWS_AT_A_TIME", 60 * 7)
    in_blocks = bootstrap_intervals(data, seed=1)
    for name, interval in first.items():
        assert in_blocks[name].low == pytest.approx(interval.low)


def test_sixty_thousand_queries_take_seconds():
    data = np.random.default_rng(0).random(60_000)
    start = time.process_time()
    bootstrap_intervals({"map@r": data, "mrr": data}, num_resamples=200)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "arguments, message",
    [
        (({"mrr": [1.0, np.nan]},), "at least two queries .* Received: 1"),
        (({"mrr": [1.0, 0.0]}, [4, 4]), "at least two classes"),
        (({"mrr": [1.0, 0.0]}, [4]), r"`classes` must have the shape"),
        (({"mrr": [1.0, 0.0]}, [0.5, 1.5]), "`classes` must hold"),
        (({"mrr": [1.0, 0.0]}, None, 1.0), "`level` must be a number in"),
        (({"mrr": [1.0, 0.0]}, None, 0.95, 0), "`num_resamples` must be"),
        (
            ({"mrr": [1.0, 0.0, 1.0], "map": [1.0, np.nan, 1.0]},),
            "NaN for the same queries",
        ),
        (({},), "`per_query` must be .* at least one metric"),
        (({"mrr": [[1.0, 0.0]]},), "`per_query` must have .*num_queries"),
        (({"mrr": [1.0, 0.0], "map": [1.0]},), r"\(2,\). Received.*\(1,\)"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        bootstrap_intervals(*arguments)


def test_refuses_results_of_other_queries():
    with pytest.raises(UsageError, match=r"shapes \(2,\) and \(3,\)"):
        paired_bootstrap([1.0, 0.0], [1.0, 0.0, 1.0])
    with pytest.raises(UsageError, match="NaN for the same queries"):
        paired_bootstrap([1.0, 0.0, np.nan], [1.0, np.nan, 0.0])


def test_refuses_results_of_several_metrics():
    with pytest.raises(UsageError, match="`first` must have .*num_queries"):
        paired_bootstrap([[1.0, 0.0]], [[1.0, 0.0]])
