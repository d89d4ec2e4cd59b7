import numpy as np
import pytest

from keras_dml.evaluation.open_set.pair_quantiles import (
    count_pairs,
    ordered_keys,
    score_of_key,
    select_thresholds,
)


def test_keys_are_in_the_order_of_the_scores():
    generator = np.random.default_rng(0)
    scores = generator.standard_normal(1000).astype("float32")
    scores *= 10.0 ** generator.integers(-30, 30, 1000)
    scores = np.sort(np.append(scores, [0.0, 1e-45, -1e-45]).astype("float32"))
    keys = ordered_keys(scores)
    assert (np.sign(np.diff(keys)) == np.sign(np.diff(scores))).all()
    for score, key in zip(scores, keys, strict=True):
        assert score_of_key(int(key)) == score


def test_negative_zero_equals_zero():
    assert len(set(ordered_keys(np.array([0.0, -0.0], "float32")))) == 1


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_selection_against_sorting(seed, ties):
    generator = np.random.default_rng(seed)
    scores = generator.standard_normal(5000).astype("float32")
    if ties:
        scores = np.round(scores, 1)
    positive = generator.random(5000) < 0.1

    def pairs():
        for start in range(0, 5000, 700):
            rows = slice(start, start + 700)
            yield scores[rows], positive[rows]

    impostors = np.sort(scores[~positive])[::-1]
    allowed = [0, 1, 17, 17, 2000, len(impostors) - 1]
    found = select_thresholds(pairs, count_pairs(pairs), allowed)
    for most, (score, reached, missed) in zip(allowed, found, strict=True):
        expected = np.nextafter(impostors[most], np.float32(np.inf))
        assert score == expected
        assert reached == np.count_nonzero(impostors >= score) <= most
        assert missed == np.count_nonzero(scores[positive] < score)
