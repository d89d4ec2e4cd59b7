import itertools

import numpy as np
import pytest
from sklearn.metrics import (
    adjusted_mutual_info_score,
    normalized_mutual_info_score,
)

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    adjusted_mutual_information,
    normalized_mutual_information,
)
from keras_dml.evaluation.metrics.clustering import expected_information

AVERAGES = ("arithmetic", "geometric")


def information(labels, clusters):
    """Mutual information and both entropies, as the formulas read."""
    size = len(labels)
    joint = np.zeros((max(labels) + 1, max(clusters) + 1))
    np.add.at(joint, (labels, clusters), 1 / size)
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    mutual = sum(
        joint[i, j] * np.log(joint[i, j] / (p[i] * q[j]))
        for i in range(len(p))
        for j in range(len(q))
        if joint[i, j]
    )
    p, q = p[p > 0], q[q > 0]
    return mutual, -np.sum(p * np.log(p)), -np.sum(q * np.log(q))


def mean(a, b, average):
    return (a + b) / 2 if average == "arithmetic" else np.sqrt(a * b)


@pytest.mark.parametrize("average", AVERAGES)
def test_information_against_the_formula(average):
    generator = np.random.default_rng(1)
    labels, clusters = generator.integers(5, size=(2, 80))
    mutual, *entropies = information(labels, clusters)
    actual = normalized_mutual_information(labels, clusters, average)
    assert actual == pytest.approx(mutual / mean(*entropies, average))
    assert actual == pytest.approx(
        normalized_mutual_info_score(labels, clusters, average_method=average)
    )


@pytest.mark.parametrize("average", AVERAGES)
def test_adjusted_information_against_every_permutation(average):
    labels, clusters = (
        np.array([0, 0, 1, 1, 1, 2]),
        np.array([0, 1, 1, 0, 2, 2]),
    )
    mutual, *entropies = information(labels, clusters)
    expected = np.mean(
        [
            information(labels, clusters[list(order)])[0]
            for order in itertools.permutations(range(6))
        ]
    )
    sizes = np.bincount(labels), np.bincount(clusters)
    assert expected_information(*sizes) == pytest.approx(expected)
    by_hand = (mutual - expected) / (mean(*entropies, average) - expected)
    actual = adjusted_mutual_information(labels, clusters, average)
    assert actual == pytest.approx(by_hand)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("rows, classes", [(80, 5), (500, 130), (60, 60)])
def test_adjusted_information_against_scikit_learn(rows, classes, average):
    generator = np.random.default_rng(2)
    labels = generator.integers(classes, size=rows)
    clusters = np.where(
        generator.random(rows) < 0.5, labels, generator.integers(9, size=rows)
    )
    actual = adjusted_mutual_information(labels, clusters, average)
    assert actual == pytest.approx(
        adjusted_mutual_info_score(labels, clusters, average_method=average),
        abs=1e-9,
    )


def test_random_clusters_score_zero_when_adjusted():
    generator = np.random.default_rng(0)
    labels, clusters = (
        np.arange(20_000) // 5,
        generator.integers(4000, size=20_000),
    )
    assert normalized_mutual_information(labels, clusters) > 0.7
    assert abs(adjusted_mutual_information(labels, clusters)) < 0.01


def test_equal_partitions_score_one():
    labels = np.random.default_rng(0).integers(7, size=100)
    for average in AVERAGES:
        assert adjusted_mutual_information(labels, labels + 3, average) == 1.0


@pytest.mark.parametrize(
    "labels, clusters", [([0, 0], [1, 1]), ([0, 0, 0], [0, 1, 2]), ([5], [1])]
)
def test_partitions_that_say_nothing_as_scikit_learn(labels, clusters):
    actual = adjusted_mutual_information(labels, clusters)
    expected = adjusted_mutual_info_score(labels, clusters)
    assert actual == pytest.approx(expected, abs=1e-9)


def test_geometric_is_never_smaller():
    labels, clusters = np.arange(40) % 8, np.arange(40) // 20
    arithmetic = normalized_mutual_information(labels, clusters)
    geometric = normalized_mutual_information(labels, clusters, "geometric")
    assert geometric > arithmetic


def test_information_does_not_depend_on_names():
    labels = np.array(["a", "b", "a", "c"])
    assert normalized_mutual_information(labels, [2, 0, 2, 1]) == 1.0
    assert adjusted_mutual_information(labels, [2, 0, 2, 1]) == 1.0


@pytest.mark.parametrize(
    "score", [normalized_mutual_information, adjusted_mutual_information]
)
def test_refuses_other_averages(score):
    with pytest.raises(UsageError, match="`average` must be one of"):
        score([0], [0], "max")


@pytest.mark.parametrize(
    "score", [normalized_mutual_information, adjusted_mutual_information]
)
@pytest.mark.parametrize("clusters", [[0, 1], [0, 1, 1, 0], [[0], [1], [1]]])
def test_refuses_clusters_of_other_rows(score, clusters):
    for labels in ([0], [0, 1, 1]):
        with pytest.raises(UsageError, match="`clusters` must have the shape"):
            score(labels, clusters)
