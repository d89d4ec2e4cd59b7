import dataclasses
import math

import numpy as np
import pytest

from keras_dml.comparison.findings import check_finding, check_findings
from keras_dml.comparison.records import Experiment
from keras_dml.comparison.summary import summarize
from keras_dml.config.plan_sections import FindingConfig
from keras_dml.evaluation import paired_bootstrap
from tests.comparison.made_up import record, unfinished, write_queries

GAINS = (0.02, 0.03, 0.025)


def claim(better, than, text="max pooling beats average", **changes):
    return FindingConfig(claim=text, better=better, than=than, **changes)


MAX = claim(["max"], ["average"])


def queries(gain, seed, count=40):
    """Values of queries whose mean exceeds those without gain by it."""
    return np.random.default_rng(seed).random(count) / 2 + gain


def pair_runs(folder=None, gains=GAINS, noise=0.0):
    """Runs of both arms; with a folder they have values of queries."""
    records = []
    for seed, gain in enumerate(gains):
        for arm, added in (("average", 0.0), ("max", gain)):
            values = queries(added, seed)
            values += noise * np.random.default_rng(len(arm)).normal(size=40)
            place = None
            if folder is not None:
                place = write_queries(folder / f"{arm}-{seed}", values)
            records.append(
                record(arm, seed, float(values.mean()), folder=place)
            )
    return records


def test_both_intervals_above_zero_confirm(tmp_path):
    found = check_finding(MAX, pair_runs(tmp_path))
    assert found.experiment == Experiment("omniglot", "small_cnn", "none", 64)
    assert found.difference == pytest.approx(0.025)
    expected = summarize(GAINS)
    assert found.seeds.low == pytest.approx(expected.low)
    assert found.seeds.high == pytest.approx(expected.high)
    assert found.queries.unit == "classes"
    assert found.queries.difference == pytest.approx(0.025)
    assert found.verdict == "confirmed"
    assert found.notes == ()


def test_both_intervals_below_zero_contradict(tmp_path):
    found = check_finding(claim(["average"], ["max"]), pair_runs(tmp_path))
    assert found.difference == pytest.approx(-0.025)
    assert found.verdict == "contradicted"


@pytest.mark.parametrize("gains", [(0.02, -0.01, 0.03), (-0.02, 0.01, -0.03)])
def test_an_interval_with_zero_leaves_it_open(gains, tmp_path):
    assert check_finding(MAX, pair_runs(tmp_path, gains)).verdict == "open"


def test_classes_can_leave_open_what_seeds_confirm(tmp_path):
    # The gain is the same in all seeds, and owed to half of the classes.
    by_class = np.where(np.arange(40) // 4 % 2, 0.3, -0.25)
    records = pair_runs(tmp_path)
    for seed, gain in enumerate(GAINS):
        values = queries(gain - 0.025, seed) + by_class
        write_queries(tmp_path / f"max-{seed}", values)
    found = check_finding(MAX, records)
    assert found.seeds.low > 0
    assert found.queries.low < 0 < found.queries.high
    assert found.verdict == "open"


def test_queries_are_averaged_over_runs_and_classes_drawn(tmp_path):
    found = check_finding(MAX, pair_runs(tmp_path, noise=0.1))
    sides = []
    for arm, gains in (("max", GAINS), ("average", (0.0,) * 3)):
        noise = 0.1 * np.random.default_rng(len(arm)).normal(size=40)
        rows = [queries(gain, s) + noise for s, gain in enumerate(gains)]
        sides.append(np.mean(rows, axis=0))
    expected = paired_bootstrap(*sides, np.arange(40) // 4)
    assert found.queries.low == pytest.approx(expected.low)
    assert found.queries.high == pytest.approx(expected.high)


def test_the_order_of_queries_does_not_matter(tmp_path):
    records = pair_runs(tmp_path / "a")
    expected = check_finding(MAX, records)
    order = np.random.default_rng(0).permutation(40)
    for seed, gain in enumerate(GAINS):
        write_queries(
            tmp_path / "a" / f"max-{seed}",
            queries(gain, seed)[order],
            ids=order,
            labels=order // 4,
        )
    found = check_finding(MAX, records)
    assert found.queries == expected.queries


def test_lone_queries_are_left_out(tmp_path):
    records = pair_runs(tmp_path)
    for seed, gain in enumerate(GAINS):
        for arm, added in (("average", 0.0), ("max", gain)):
            values = queries(added, seed)
            values[5] = math.nan
            write_queries(tmp_path / f"{arm}-{seed}", values)
    assert check_finding(MAX, records).verdict == "confirmed"


def test_without_values_of_queries_seeds_decide_alone():
    found = check_finding(MAX, pair_runs())
    assert found.queries is None
    assert found.verdict == "confirmed"
    assert "no interval over classes, because" in found.notes[0]
    assert "no values of single queries" in found.sentence


def test_with_one_seed_classes_decide_alone(tmp_path):
    found = check_finding(MAX, pair_runs(tmp_path, gains=GAINS[:1]))
    assert found.seeds is None
    assert found.verdict == "confirmed"
    assert found.notes == ("one seed: nothing is known of other seeds",)


def test_with_neither_it_is_open():
    found = check_finding(MAX, pair_runs(gains=GAINS[:1]))
    assert (found.seeds, found.queries) == (None, None)
    assert found.difference == pytest.approx(0.02)
    assert found.verdict == "open"


@pytest.mark.parametrize(
    "spoil, note",
    [
        (lambda path: path.write_bytes(b"nothing"), "cannot be read"),
        (lambda path: path.unlink(), "has no values of single queries"),
        (
            lambda path: write_queries(path.parent, [1.0] * 40, metric="mrr"),
            "has no map@r",
        ),
        (
            lambda path: write_queries(path.parent, [1.0] * 8),
            "measured on other queries",
        ),
        (
            lambda path: write_queries(path.parent, [1.0], labels=[1, 2]),
            "arrays of different lengths",
        ),
    ],
)
def test_spoilt_values_of_queries_are_told(spoil, note, tmp_path):
    records = pair_runs(tmp_path)
    spoil(tmp_path / "max-1" / "per_query.npz")
    found = check_finding(MAX, records)
    assert found.queries is None
    assert note in found.notes[-1]
    assert found.verdict == "confirmed"


def test_queries_may_have_several_labels(tmp_path):
    records = pair_runs(tmp_path)
    plain = check_finding(MAX, records).queries
    for path in tmp_path.glob("*/per_query.npz"):
        arrays = dict(np.load(path))
        arrays["labels"] = np.eye(99, dtype=bool)[arrays["labels"]]
        np.savez(path, **arrays)
    assert check_finding(MAX, records).queries == plain is not None


def test_arms_measured_on_other_queries_are_told(tmp_path):
    records = pair_runs(tmp_path)
    for seed in range(3):
        write_queries(tmp_path / f"max-{seed}", [0.5] * 8)
    found = check_finding(MAX, records)
    assert "different queries" in found.notes[-1]


def test_a_single_test_class_has_no_interval(tmp_path):
    records = pair_runs(tmp_path)
    for each in records:
        write_queries(each.folder, [0.5] * 8, labels=[1] * 8)
    found = check_finding(MAX, records)
    assert "at least two classes" in found.notes[-1]


@pytest.mark.parametrize(
    "runs, note",
    [
        ([], "`max` is not among the runs"),
        ([unfinished("max", 0, "failed")], "`max` failed in 1 run"),
        ([unfinished("max", 0, "to do")], "`max` has no finished run yet"),
        ([record("max", 9)], "no seed in common"),
        ([record("max", 0, after={"mrr": 1.0})], "`max` has no map@r"),
    ],
)
def test_missing_arms_are_not_measured(runs, note):
    found = check_finding(MAX, [record("average", 0), *runs])
    assert found.verdict == "not measured"
    assert math.isnan(found.difference)
    assert note in found.notes[0]
    assert "nan" not in found.sentence


def test_seeds_that_failed_are_left_out_and_told(tmp_path):
    records = pair_runs(tmp_path)
    records[-1] = unfinished("max", 2, "failed")
    found = check_finding(MAX, records)
    assert found.seeds.count == 2
    assert found.difference == pytest.approx(0.025)
    assert found.notes == ("1 of 3 seeds left out, not finished by all",)


def test_rounding_errors_are_no_difference():
    # 0.1 + 0.1 + 0.1 is more than three times 0.1.
    records = [record(arm, s, 0.1) for arm in "wxyz" for s in range(3)]
    found = check_finding(claim(["x", "y", "z"], ["w"]), records)
    assert np.mean([0.1] * 3) != 0.1
    assert (found.difference, found.verdict) == (0, "open")


def test_results_chosen_on_the_test_are_told(tmp_path):
    records = pair_runs(tmp_path)
    records[0] = dataclasses.replace(records[0], oracle=True)
    found = check_finding(MAX, records)
    assert found.notes == ("oracle: epochs were chosen on the test classes",)


def test_folds_are_averaged_before_seeds_are_compared():
    gains = np.random.default_rng(0).normal(0.02, 0.01, (3, 2))
    records = [
        record(arm, seed, 0.5 + added * gains[seed, fold], fold=fold)
        for seed in range(3)
        for fold in range(2)
        for arm, added in (("average", 0), ("max", 1))
    ]
    found = check_finding(MAX, records)
    expected = summarize(gains.mean(axis=1))
    assert found.seeds.low == pytest.approx(expected.low)
    assert found.seeds.count == 3
    found = check_finding(MAX, [run for run in records if run.seed == 1])
    assert found.seeds.unit == "folds"
    assert found.seeds.mean == pytest.approx(gains[1].mean())


def group_runs(values):
    """Runs of several arms whose differences are the same in all seeds."""
    generator = np.random.default_rng(0)
    return [
        record(arm, seed, value + 1e-4 * generator.random())
        for arm, value in values.items()
        for seed in range(3)
    ]


def test_groups_are_compared_by_their_means():
    runs = group_runs({"a": 0.7, "b": 0.5, "c": 0.55, "d": 0.45})
    found = check_finding(claim(["a", "b"], ["c", "d"]), runs)
    assert found.difference == pytest.approx(0.1, abs=1e-3)
    assert found.verdict == "confirmed"
    assert found.pairs == ()


@pytest.mark.parametrize(
    "values, verdict",
    [
        ({"a": 0.7, "b": 0.6, "c": 0.55, "d": 0.45}, "confirmed"),
        ({"a": 0.7, "b": 0.5, "c": 0.55, "d": 0.45}, "contradicted"),
        ({"a": 0.7, "b": 0.55, "c": 0.55, "d": 0.45}, "open"),
        ({"a": 0.7, "b": 0.6, "c": 0.55}, "not measured"),
        ({"a": 0.7, "b": 0.5, "c": 0.55}, "contradicted"),
    ],
)
def test_each_pair_must_hold(values, verdict):
    found = check_finding(
        claim(["a", "b"], ["c", "d"], each=True), group_runs(values)
    )
    assert found.verdict == verdict
    assert len(found.pairs) == 4
    least = min(values["a"], values["b"]) - values["c"]
    assert found.difference == pytest.approx(least, abs=1e-3)
    assert found.finding.better == ["a", "b"]
    assert found.finding.than == ["c", "d"]
    assert "`b` against `c`" in found.sentence


def test_experiments_are_checked_one_by_one():
    records = [
        dataclasses.replace(run, dim=dim)
        for dim in (64, 128)
        for run in pair_runs()
    ]
    records.append(record("other", dim=256))
    found = check_findings([MAX, claim(["x"], ["y"])], records)
    assert [each.experiment and each.experiment.dim for each in found] == [
        64,
        128,
        None,
    ]
    assert found[-1].verdict == "not measured"
    with pytest.raises(ValueError, match="of one experiment"):
        check_finding(MAX, records)


def test_the_sentence_says_it_all(tmp_path):
    found = check_finding(MAX, pair_runs(tmp_path))
    assert found.sentence == (
        "max pooling beats average (omniglot, small_cnn, from scratch, "
        "embeddings of 64 numbers): "
        f"+0.025 MAP@R, seeds +0.013 to +0.037, classes "
        f"{found.queries.low:+.3f} to {found.queries.high:+.3f}: confirmed"
    )
