import numpy as np
import pytest

from keras_dml.ops import sample_aware


def test_effective_number():
    count = np.array([0.0, 1.0, 2.0, 50.0, 1e6])
    expected = [(1 - 0.99**n) / (1 - 0.99) for n in count]
    np.testing.assert_allclose(
        sample_aware.effective_number(count, 100.0),
        expected,
        rtol=1e-9,
        atol=1e-12,
    )
    single = sample_aware.effective_number(count.astype("float32"), 100.0)
    np.testing.assert_allclose(single, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "seen, expected",
    [(0, 1.0), (200, 1.0), (300, 0.968), (460, 0.370), (600, 0.217)],
)
def test_timeline_of_sigma(seen, expected):
    effective = sample_aware.effective_number(np.array(float(seen)), 100.0)
    atol = 0.005 if expected == 1.0 else 0.0006
    np.testing.assert_allclose(
        sample_aware.sigma(effective, 100.0, 1.5), expected, atol=atol
    )


def test_limits_of_sigma_and_of_its_bound():
    limit = 1 / (1 + np.log(101))
    full = np.array(100.0)
    np.testing.assert_allclose(limit, 0.1781, atol=5e-5)
    np.testing.assert_allclose(sample_aware.lower_bound(full), limit, rtol=1e-9)
    np.testing.assert_allclose(
        sample_aware.sigma(full, 100.0, 1.5), limit, rtol=1e-9
    )
    assert sample_aware.lower_bound(np.array(0.0)) == 1


def test_sigma_is_that_of_the_paper():
    """As printed, where its exponential does not overflow."""
    effective = np.linspace(50, 100, 11)
    v = 1 / (1 + np.log(1 + effective))
    expected = 1 + (1 + np.exp(-1.5)) * (v - 1) / (
        1 + np.exp(100 - effective - 1.5)
    )
    actual = sample_aware.sigma(effective, 100.0, 1.5)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    assert np.isfinite(sample_aware.sigma(np.float32(0), 1e4, 1.5))


def test_search_length():
    """A harder class has a wider range, and each less as it learns."""
    effective = np.array([0.0, 50.0, 100.0])
    easy = sample_aware.search_length(0.15, effective, 0.9, 0.1)
    hard = sample_aware.search_length(0.0, effective, 0.9, 0.1)
    assert np.all(np.diff(easy) < 0)
    assert np.all(hard > easy)
    np.testing.assert_allclose(easy[0], 1 + 0.9 * 0.85 + 0.1)


def test_table_of_positive_weights():
    similarity = np.array([0.20, 0.15, 0.0, -0.5, -0.51])
    weights = sample_aware.positive_weight(
        similarity, 0.15, -0.5, np.array(0.4)
    )
    np.testing.assert_allclose(weights, [0.4, 1.4, 1.4, 1.4, 0.4])


def test_table_of_negative_weights():
    similarity = np.array([[0.2, -0.4], [-0.6, -0.6], [-0.5, -0.5]])
    weights = sample_aware.negative_weight(
        similarity, np.array([-0.5, -0.3]), np.array([40.0, 0.5])
    )
    # An effective number below 1 does not enlarge the weight.
    np.testing.assert_allclose(weights, [[1, 1], [1 / 40, 1], [1, 1]])
