import numpy as np
import pytest

from keras_dml.data.index_batches import Replicas, index_batches
from keras_dml.data.sampling import balanced_batches

LABELS = np.repeat(np.arange(12), 5)
CLASSES, IMAGES, STEPS = 6, 4, 5


def sampler(epoch):
    return list(balanced_batches(LABELS, CLASSES, IMAGES, 0, epoch, STEPS))


def read(count, **options):
    """Rows and draws of the first `count` batches."""
    shape = (STEPS, CLASSES * IMAGES)
    batches = index_batches(sampler, shape, 0, 0, **options).unbatch()
    pairs = list(batches.take(count).as_numpy_iterator())
    return [np.stack(part) for part in zip(*pairs, strict=True)]


@pytest.mark.parametrize("total, count", [(2, 1), (3, 1), (6, 2)])
def test_replicas_share_a_batch_in_whole_groups(total, count):
    """Their parts, put together, are the batch of one device."""
    whole = read(7)
    workers = [
        read(7 * count, replicas=Replicas(first, count, total))
        for first in range(0, total, count)
    ]
    for number, expected in enumerate(whole):
        parts = [
            worker[number].reshape(7, -1, *expected.shape[2:])
            for worker in workers
        ]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), expected)
    for worker in workers:
        labels = LABELS[worker[0]].reshape(-1, IMAGES)
        assert (labels == labels[:, :1]).all()
        classes = labels[:, 0].reshape(7 * count, -1)
        assert all(len(set(row)) == CLASSES // total for row in classes)


def test_an_epoch_may_start_in_its_middle():
    whole, resumed = read(2 * STEPS), read(2 * STEPS - 3, first_step=3)
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a[3:], b)
