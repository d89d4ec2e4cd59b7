import numpy as np
import pytest

from keras_dml.comparison.standings import (
    conclusion,
    gap_rows,
    ranked_by,
    ranking_rows,
    standings,
)
from tests.comparison.made_up import record, unfinished, write_queries

METRICS = ("recall@1", "map@r")


def runs(folder=None, seeds=3, values=(("a", 0.5), ("b", 0.6), ("c", 0.59))):
    """`b` is the best; `c` is nearly as good, `a` is not."""
    records = []
    for arm, value in values:
        for seed in range(seeds):
            noise = np.random.default_rng([seed, len(records)])
            queries = value + 0.05 * noise.random(40)
            place = None
            if folder is not None:
                place = write_queries(folder / f"{arm}-{seed}", queries)
            mean = float(queries.mean())
            records.append(record(arm, seed, mean, folder=place))
    return [*records, unfinished("d", 0, "to do")]


def test_arms_are_ranked_and_compared_with_the_best(tmp_path):
    ((experiment, arms),) = standings(runs(tmp_path), METRICS, "map@r").items()
    assert experiment.source == "omniglot"
    assert [one.arm for one in arms] == ["b", "c", "a"]
    assert [one.verdict for one in arms] == ["best", "worse", "worse"]
    assert arms[0].gap is None
    gap = arms[2].gap
    assert gap.difference == pytest.approx(-0.1, abs=0.01)
    assert gap.seeds.high < 0 and gap.queries.high < 0


def test_one_seed_still_has_intervals_over_classes(tmp_path):
    (arms,) = standings(runs(tmp_path, seeds=1), METRICS, "map@r").values()
    assert [one.verdict for one in arms] == ["best", "worse", "worse"]
    rows = gap_rows(arms)
    assert [*rows[0]] == ["arm", "gap", "interval: classes", "verdict"]
    assert ranking_rows(arms, METRICS)[0]["R@1"].startswith("0.6")
    assert "±" not in ranking_rows(arms, METRICS)[0]["R@1"]


def test_without_repetition_and_queries_nothing_is_told():
    (arms,) = standings(runs(seeds=1), METRICS, "map@r").values()
    assert {one.verdict for one in arms[1:]} == {"open"}
    assert [*gap_rows(arms)[0]] == ["arm", "gap", "verdict"]


def test_the_conclusion_says_which_arm_is_best_and_how_surely(tmp_path):
    def said(records):
        (arms,) = standings(records, METRICS, "map@r").values()
        return conclusion(arms, "MAP@R")

    many = runs(tmp_path / "many")
    assert said(many) == "b is best by MAP@R: c and a are worse."
    once = runs(tmp_path / "once", seeds=1)
    assert said(once).endswith(
        "worse. Each was trained once: other seeds may rank them otherwise."
    )
    assert said(runs(seeds=1)).startswith(
        "b leads by MAP@R; whether it is better than c and a is open."
    )
    near = (("a", 0.1), ("b", 0.6), ("c", 0.6))
    assert ", a is worse; whether it is better than " in said(
        runs(tmp_path / "near", values=near)
    )
    assert said(runs(values=(("a", 0.5),))) == ""


def test_an_arm_that_leads_by_its_easy_seeds_is_not_called_best():
    """It was, or it was open, though it was worse on every seed of both."""
    values = {"a": (0.40, 0.50, 0.60, 0.61), "b": (None, None, 0.58, 0.592)}
    records = [
        unfinished(arm, seed, "failed")
        if value is None
        else record(arm, seed, value)
        for arm, own in values.items()
        for seed, value in enumerate(own)
    ]
    (arms,) = standings(records, METRICS, "map@r").values()
    assert [one.verdict for one in arms] == ["best", "better"]
    assert conclusion(arms, "MAP@R") == (
        "b leads by MAP@R. On the seeds that both finished, a is better."
    )


def test_arms_without_a_common_seed_have_no_gap():
    """It was `+nan`."""
    records = [
        record("a", 0, 0.4),
        unfinished("a", 1, "failed"),
        unfinished("b", 0, "failed"),
        record("b", 1, 0.58),
    ]
    (arms,) = standings(records, METRICS, "map@r").values()
    (row,) = gap_rows(arms)
    assert (row["gap"], row["verdict"]) == ("-", "not measured")
    assert "whether it is better than a is open" in conclusion(arms, "MAP@R")


def test_rows_are_narrow_enough_for_a_terminal(tmp_path):
    values = (("multi_similarity", 0.5), ("soft_triple", 0.61))
    records = runs(tmp_path, values=values)
    (arms,) = standings(records, METRICS, "map@r").values()
    for rows in (ranking_rows(arms, METRICS), gap_rows(arms)):
        widths = [
            max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]
        ]
        # A border, a space on both sides of each column.
        assert sum(widths) + 3 * len(widths) + 1 <= 80


def test_experiments_are_ranked_alone():
    records = [
        record("a", value=0.5),
        record("b", value=0.6),
        record("a", value=0.9, dim=128),
        record("b", value=0.8, dim=128),
    ]
    found = standings(records, METRICS, "map@r")
    assert [arms[0].arm for arms in found.values()] == ["b", "a"]
    assert standings([unfinished("a", 0, "failed")], METRICS, "map@r") == {}


def test_the_metric_that_ranks():
    assert ranked_by([]) == "map@r"
    assert ranked_by(["recall@1", "map@r"]) == "map@r"
    assert ranked_by(["nmi", "recall@1"]) == "nmi"
