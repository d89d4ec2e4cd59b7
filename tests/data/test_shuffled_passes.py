import numpy as np
import pytest

from keras_dml.data.shuffled_passes import random_batches
from keras_dml.errors import UsageError


@pytest.mark.parametrize("seed", range(25))
def test_random_batches_laws(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 60))
    size = int(generator.integers(1, 30))
    steps = [None, int(generator.integers(1, 9))][seed % 2]
    epochs = [
        random_batches(count, size, seed, epoch, steps=steps)
        for epoch in range(12)
    ]
    batches = [rows for epoch in epochs for rows in epoch]
    for rows in batches:
        assert len(rows) == len(set(rows)) == min(size, count)
    assert {len(epoch) for epoch in epochs} == {steps or max(count // size, 1)}
    if count >= 2 * size:
        times = np.bincount(np.concatenate(batches), minlength=count)
        assert np.ptp(times) <= 1, "an image is drawn more often than another"


def test_the_rest_of_a_pass_begins_the_next_epoch():
    """901 images, batches of 128: no batch of 5 images, and none left out."""
    epochs = [random_batches(901, 128, 0, epoch) for epoch in range(9)]
    assert [[len(rows) for rows in e] for e in epochs] == [[128] * 7] * 9
    drawn = np.concatenate([rows for epoch in epochs for rows in epoch])
    assert set(drawn[:901]) == set(range(901))
    assert not np.array_equal(np.sort(drawn[:896]), np.sort(drawn[896:1792]))


def test_random_batches_depend_on_seed_and_epoch_only():
    first = random_batches(10, 4, 7, 5)
    np.testing.assert_array_equal(first, random_batches(10, 4, 7, 5))
    assert not np.array_equal(first, random_batches(10, 4, 7, 6))
    assert not np.array_equal(first, random_batches(10, 4, 8, 5))


def test_the_remainder_is_dropped_on_request():
    full = random_batches(10, 4, 0, 0, drop_remainder=True)
    assert [len(rows) for rows in full] == [4, 4]
    assert len(set(np.concatenate(full))) == 8
    longer = random_batches(10, 4, 0, 0, drop_remainder=True, steps=5)
    assert len(set(np.concatenate(longer[2:4]))) == 8


def test_rows_of_an_unfinished_batch_are_completed_uniformly():
    completing = [random_batches(10, 4, seed, 1)[0][2:] for seed in range(4000)]
    times = np.bincount(np.concatenate(completing), minlength=10)
    assert np.abs(times - 800).max() < 5 * np.sqrt(800)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: random_batches(3, 4, 0, 0, drop_remainder=True),
            "`batch_size` must be at most the number of images, 3",
        ),
        (lambda: random_batches(0, 4, 0, 0), "`count` must be a positive"),
    ],
)
def test_errors(call, message):
    with pytest.raises(UsageError, match=message):
        call()
