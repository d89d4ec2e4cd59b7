import math

import numpy as np
import pytest
from scipy import stats

from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.records import (
    Experiment,
    trained_runs,
    write_results,
)
from keras_dml.comparison.summary import (
    paired_repetitions,
    summarize,
    summarize_arms,
    summarize_runs,
)
from tests.comparison.made_up import record, unfinished

EXPERIMENT = Experiment("omniglot", "small_cnn", "none", 64)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_the_interval_is_students(count):
    values = np.random.default_rng(count).normal(0.6, 0.01, count)
    low, high = stats.t.interval(
        0.95, count - 1, loc=values.mean(), scale=stats.sem(values)
    )
    found = summarize(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.std == pytest.approx(values.std(ddof=1))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.count == count


def test_the_interval_holds_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    found = [summarize(generator.normal(0.6, 0.01, 3)) for _ in range(2000)]
    inside = np.mean([each.low < 0.6 < each.high for each in found])
    assert 0.93 < inside < 0.97


def test_one_value_has_no_spread():
    found = summarize([0.5])
    assert found.mean == 0.5
    assert all(map(math.isnan, (found.std, found.low, found.high)))


@pytest.mark.parametrize("values", [[], [[0.5]]])
def test_what_has_no_mean_is_refused(values):
    with pytest.raises(
        ValueError, match="at least one number. Received: values="
    ):
        summarize(values)


def test_seeds_are_the_repetitions():
    records = [record(seed=seed, value=0.5 + seed / 10) for seed in range(3)]
    found = summarize_arms(records, "map@r")[EXPERIMENT]["softmax"]
    assert found == summarize([0.5, 0.6, 0.7])
    assert found.unit == "seeds"


def test_folds_of_a_seed_are_averaged_first():
    values = np.random.default_rng(0).random((2, 4))
    records = [
        record(seed=seed, fold=fold, value=values[seed, fold])
        for seed in range(2)
        for fold in range(4)
    ]
    found = summarize_runs(records, "map@r")
    expected = summarize(values.mean(axis=1), folds=4)
    assert (found.count, found.unit, found.folds) == (2, "seeds", 4)
    assert found.mean == pytest.approx(expected.mean)
    assert found.std == pytest.approx(expected.std)


def test_folds_of_a_single_seed_are_the_repetitions():
    values = [0.5, 0.55, 0.7]
    records = [record(fold=f, value=value) for f, value in enumerate(values)]
    found = summarize_runs(records, "map@r")
    assert found == summarize(values, unit="folds")


@pytest.mark.parametrize("order", [1, -1])
def test_runs_pair_by_seed_and_fold_whatever_their_order(order):
    first = [record("a", s, 0.1 * s) for s in range(4)]
    second = [record("b", s, 0.1 * s - 0.05) for s in (1, 2, 3, 7)]
    arms = {"a": first[::order], "b": second}
    found = paired_repetitions(arms, "map@r")
    assert found.pairs == ((1, None), (2, None), (3, None))
    np.testing.assert_allclose(found.values @ [1, -1], 0.05)


def test_unfinished_runs_and_other_metrics_do_not_count():
    records = [
        record(seed=0, value=0.5),
        unfinished("softmax", 1, "failed"),
        unfinished("softmax", 2, "to do"),
        record(seed=3, value=math.nan),
        unfinished("bn", 0, "failed"),
    ]
    found = summarize_arms(records, "map@r")
    assert list(found[EXPERIMENT]) == ["softmax"]
    assert found[EXPERIMENT]["softmax"].count == 1
    assert summarize_arms(records, "recall@9") == {EXPERIMENT: {}}
    assert summarize_runs(records, "recall@9") is None


def test_networks_and_sizes_are_never_averaged_together():
    records = [
        record(value=0.1),
        record(value=0.2, dim=128),
        record(value=0.3, backbone="resnet50"),
        record(value=0.4, weights="imagenet"),
        record(value=0.5, source="grocery"),
    ]
    found = summarize_arms(records, "map@r")
    means = [arms["softmax"].mean for arms in found.values()]
    assert means == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_concatenated_folds_are_no_training_of_their_size(
    tmp_path, monkeypatch
):
    """Four folds of 128 numbers are as long as an embedding of 512."""
    monkeypatch.setattr(
        "keras_dml.comparison.concatenated._measure",
        lambda folds, target, result: result.write_text('{"map@r": 0.9}'),
    )
    folds = [
        record(fold=fold, dim=dim, value=value)
        for dim, value in ((128, 0.4), (512, 0.5))
        for fold in range(4)
    ]
    records = [*folds, *concatenated(folds, tmp_path)]
    found = summarize_arms(records, "map@r")
    means = [
        (experiment.dim, round(arms["softmax"].mean, 6))
        for experiment, arms in found.items()
    ]
    assert means == [(128, 0.4), (512, 0.5), (512, 0.9), (2048, 0.9)]
    titles = [experiment.title for experiment in found]
    assert len({*titles}) == 4
    assert titles[2].endswith("512 numbers, 4 folds concatenated")
    assert trained_runs(records) == folds
    write_results(records, tmp_path / "results.csv")
    header, *rows = (tmp_path / "results.csv").read_text().splitlines()
    column = header.split(",").index("concatenated")
    assert {row.split(",")[column] for row in rows} == {"0", "4"}
