"""The share of `HDC` is exact, also where it is small."""

import math

import numpy as np
import pytest

from keras_dml.miners import hardest_pairs

DISTANCE = np.random.default_rng(0).random((300, 300)).astype("float32")
ALL = np.ones(DISTANCE.shape, bool)


@pytest.mark.parametrize("share", [1e-12, 1e-5, 2e-5, 1.5e-4, 0.1, 0.7, 1.0])
def test_a_share_is_rounded_up(share):
    _, chosen = hardest_pairs(DISTANCE, ~ALL, ALL, share)
    wanted = math.ceil(round(share * ALL.size, 6)) or 1
    nearest = np.sort(DISTANCE, axis=None)[:wanted]
    np.testing.assert_array_equal(np.sort(DISTANCE[chosen]), nearest)
    assert len(nearest) == wanted


def test_of_no_pairs_none_is_chosen():
    positive, negative = hardest_pairs(DISTANCE, ~ALL, ~ALL, 1e-5)
    assert not np.any(positive) and not np.any(negative)
