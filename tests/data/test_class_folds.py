import numpy as np
import pytest

from keras_dml.data.class_folds import fold_classes
from keras_dml.errors import UsageError


def folds_of(count, folds, split="random", seed=0):
    labels = np.repeat(np.arange(count) * 3, 2)
    return [fold_classes(labels, folds, f, split, seed) for f in range(folds)]


@pytest.mark.parametrize(("count", "folds"), [(100, 10), (98, 4), (23, 5)])
def test_every_class_validates_once_in_random_folds(count, folds):
    parts = folds_of(count, folds)
    np.testing.assert_array_equal(
        np.sort(np.concatenate(parts)), np.arange(count) * 3
    )
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_random_folds_of_a_seed_belong_together():
    first, again, other = (folds_of(40, 4, seed=s) for s in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any(
        not np.array_equal(one, two)
        for one, two in zip(first, other, strict=True)
    )


@pytest.mark.parametrize(
    ("count", "ranges"),
    [
        # CUB-200: the code of "A Metric Learning Reality Check".
        (100, [(75, 100), (0, 25), (25, 50), (50, 75)]),
        # Cars196: training starts at 0, 24, 49 and 73 and goes round.
        (98, [(74, 98), (0, 24), (25, 49), (49, 73)]),
    ],
)
def test_contiguous_folds_of_the_reality_check(count, ranges):
    labels = np.arange(count)
    for fold, (low, high) in enumerate(ranges):
        np.testing.assert_array_equal(
            fold_classes(labels, 4, fold, "contiguous"), np.arange(low, high)
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((range(10), 6, 0), "at least 12 training classes"),
        ((range(10), 11, 0), "Use at most 5 folds"),
        ((range(10), 1, 0), "`folds` must be an integer of at least 2"),
        ((range(10), 4, 4), "fold=4"),
        ((range(10), 4, 0, "sorted"), "Received: split='sorted'"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(UsageError, match=message):
        fold_classes(*arguments)
