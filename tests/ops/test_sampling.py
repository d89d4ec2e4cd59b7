import numpy as np
import pytest
import tensorflow as tf

from keras_dml.ops.rows import NO_VALUE, distinct
from keras_dml.ops.sampling import positions_in_sample, sample_classes
from tests.conformance import to_numpy

RNG = np.random.default_rng(0)


def draw(labels, num_classes, size, uniform=None):
    if uniform is None:
        uniform = RNG.uniform(size=size + 1)
    labels = np.asarray(labels, "int32")
    uniform = np.asarray(uniform, "float32")
    # float32 may round up to 1, which the generator of Keras never gives.
    uniform = np.minimum(uniform, np.nextafter(np.float32(1), np.float32(0)))
    return to_numpy(sample_classes(labels, num_classes, size, uniform)).astype(
        int
    )


@pytest.mark.parametrize("values", [[4], [4, 4], [9, 0, 9, 3], []])
def test_distinct_values_are_those_of_numpy(values):
    found, count = distinct(np.array(values, "int32"))
    wanted = np.unique(values)
    assert int(count) == len(wanted)
    np.testing.assert_array_equal(found[: len(wanted)], wanted)
    np.testing.assert_array_equal(found[len(wanted) :], NO_VALUE)


@pytest.mark.parametrize("num_classes", [1, 2, 7, 50])
def test_any_sample_is_distinct_and_begins_with_the_batch(num_classes):
    for _ in range(30):
        labels = RNG.integers(0, num_classes, RNG.integers(1, 12))
        own = np.unique(labels)
        size = int(RNG.integers(len(own), num_classes + 1))
        sample = draw(labels, num_classes, size)
        np.testing.assert_array_equal(sample[: len(own)], own)
        assert len(set(sample)) == size
        assert sample.min() >= 0
        assert sample.max() < num_classes


@pytest.mark.parametrize("uniform", [0.0, 1.0])
def test_the_ends_of_the_draws_stay_inside(uniform):
    sample = draw([0, 9], 10, 6, np.full(7, uniform))
    assert set(sample) <= set(range(10))
    assert len(set(sample)) == 6


def test_everything_is_sampled_when_there_is_room():
    for _ in range(20):
        labels = RNG.integers(0, 13, 5)
        assert sorted(draw(labels, 13, 13)) == list(range(13))


def test_every_other_class_is_drawn_as_often():
    """Twenty-three others in nine neighborhoods, which do not divide."""
    labels, rounds = tf.constant([3, 17, 3]), 2500
    compiled = tf.function(lambda u: sample_classes(labels, 25, 11, u))
    counts = np.zeros(25)
    for uniform in tf.constant(RNG.uniform(size=(rounds, 12)), "float32"):
        counts[compiled(uniform).numpy()] += 1
    np.testing.assert_array_equal(counts[[3, 17]], rounds)
    others = np.delete(counts, [3, 17]) / rounds
    # Five standard deviations of a share of 9 / 23.
    np.testing.assert_allclose(others, 9 / 23, atol=0.0488)


@pytest.mark.slow
def test_two_neighbors_may_be_drawn_together():
    together = sum(
        {4, 5} <= set(draw([0], 20, 6, uniform))
        for uniform in RNG.uniform(size=(200, 7))
    )
    assert together > 0


def test_large_numbers_of_classes_do_not_overflow():
    labels = RNG.integers(0, 5_000_000, 100)
    sample = draw(labels, 5_000_000, 500_000)
    assert len(set(sample)) == 500_000
    assert sample.min() >= 0
    assert sample.max() < 5_000_000
    assert set(labels) <= set(sample)


def test_positions_lead_to_the_own_class():
    labels = RNG.integers(0, 40, 12).astype("int32")
    sample = draw(labels, 40, 20)
    positions = positions_in_sample(labels[3:7], labels)
    np.testing.assert_array_equal(
        sample[to_numpy(positions).astype(int)], labels[3:7]
    )
