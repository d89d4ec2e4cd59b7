import pytest

from keras_dml.evaluation.index.scann_searcher import ScannShape


@pytest.mark.parametrize(
    "num_references, expected",
    [
        (1, ScannShape("brute_force")),
        (19_999, ScannShape("brute_force")),
        (20_000, ScannShape("hashing")),
        (99_999, ScannShape("hashing")),
        (100_000, ScannShape("tree", 316)),
        (1_000_000, ScannShape("tree", 1000)),
    ],
)
def test_follows_the_rules_of_scann(num_references, expected):
    assert ScannShape.choose(num_references) == expected


def test_what_is_asked_for_wins():
    assert ScannShape.choose(10**6, "hashing") == ScannShape("hashing")
    assert ScannShape.choose(100, "tree") == ScannShape("tree", 10)
    assert ScannShape.choose(100, None, 7) == ScannShape("tree", 7)
    assert ScannShape.choose(100, "tree", 7) == ScannShape("tree", 7)


def test_no_more_leaves_than_references():
    assert ScannShape.choose(50, "tree", 80).num_leaves == 50


@pytest.mark.parametrize("name", ["hashing", "tree"])
def test_too_few_to_train_hashes_need_brute_force(name):
    assert ScannShape.choose(15, name) == ScannShape("brute_force")
    assert ScannShape.choose(16, name).name == name


@pytest.mark.parametrize(
    "num_leaves, expected", [(0, 1), (1, 1), (10, 1), (11, 2), (1000, 100)]
)
def test_searches_a_tenth_of_the_leaves(num_leaves, expected):
    assert ScannShape("tree", num_leaves).default_leaves_to_search == expected
