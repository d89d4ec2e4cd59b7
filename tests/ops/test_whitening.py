import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.ops import within_class_whitening


def classes(seed=0, num_classes=12, size=30, dim=6):
    """Draws classes that differ along all axes and vary along the first."""
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(num_classes, dim))
    spread = np.array([30.0] + [0.3] * (dim - 1))
    labels = np.repeat(np.arange(num_classes), size)
    noise = generator.normal(size=(len(labels), dim)) * spread
    return (centers[labels] + noise + 3.0).astype("float32"), labels


def nearest_share(features, labels):
    distances = ((features[:, None] - features[None]) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    return np.mean(labels[distances.argmin(1)] == labels)


def test_rows_of_a_class_differ_equally_along_all_directions():
    features, labels = classes()
    kernel, bias = within_class_whitening(features, labels, 6, 1e-9)
    projected = features @ kernel + bias
    means = np.stack([projected[labels == c].mean(0) for c in range(12)])
    apart = projected - means[labels]
    covariance = apart.T @ apart / len(apart)
    level = np.trace(covariance) / 6
    np.testing.assert_allclose(covariance / level, np.eye(6), atol=1e-5)


def test_projected_rows_have_mean_zero_and_length_one():
    features, labels = classes()
    kernel, bias = within_class_whitening(features, labels, 4)
    projected = features @ kernel + bias
    np.testing.assert_allclose(projected.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose((projected**2).sum(1).mean(), 1, rtol=1e-6)


def test_full_shrinkage_is_a_principal_component_analysis():
    features, labels = classes()
    kernel, _ = within_class_whitening(features, labels, 3, 1.0)
    _, _, axes = np.linalg.svd(features - features.mean(0))
    cosines = np.abs((kernel / np.linalg.norm(kernel, axis=0)).T @ axes[:3].T)
    np.testing.assert_allclose(cosines, np.eye(3), atol=1e-3)


def test_separates_classes_that_it_has_not_seen():
    features, labels = classes()
    unseen, unseen_labels = classes(seed=1)
    kernel, bias = within_class_whitening(features, labels, 6, 1e-3)
    before = nearest_share(unseen, unseen_labels)
    after = nearest_share(unseen @ kernel + bias, unseen_labels)
    assert after > before + 0.3


def test_directions_in_which_no_row_varies_are_kept():
    """Two classes of two rows vary in three directions of six."""
    features, labels = classes(num_classes=2, size=2)
    kernel, bias = within_class_whitening(features, labels, 9, 1.0)
    assert kernel.shape == (6, 9)
    np.testing.assert_allclose((features @ kernel + bias)[:, 3:], 0, atol=1e-5)
    gram = kernel[:, :6] @ kernel[:, :6].T
    np.testing.assert_allclose(gram / gram[0, 0], np.eye(6), atol=1e-6)
    assert not kernel[:, 6:].any() and not bias[6:].any()


@pytest.mark.slow
def test_few_rows_lose_nothing_that_separates_other_classes():
    """As many directions as rows lost a third of the nearest neighbors."""
    generator = np.random.default_rng(0)
    centers = generator.normal(size=(30, 256))
    labels = np.repeat(np.arange(30), 8)
    rows = centers[labels] + 0.9 * generator.normal(size=(240, 256))
    few = labels < 3
    for shrinkage in (0.3, 1.0):
        kernel, bias = within_class_whitening(
            rows[few], labels[few], 128, shrinkage
        )
        others, theirs = rows[~few], labels[~few]
        before = nearest_share(others, theirs)
        assert nearest_share(others @ kernel + bias, theirs) > before - 0.05


def test_equal_rows_give_finite_numbers():
    kernel, bias = within_class_whitening(np.ones((4, 3)), [0, 0, 1, 1], 2)
    assert np.isfinite(kernel).all() and np.isfinite(bias).all()


def test_one_image_a_class_leaves_the_directions_as_they_are():
    features, _ = classes()
    kernel, _ = within_class_whitening(features, np.arange(len(features)), 6)
    gram = kernel.T @ kernel
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(6), atol=1e-9)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.ones(3), [0, 1, 2], 2), "features"),
        ((np.ones((3, 2)), [0, 1], 2), "labels"),
        ((np.ones((3, 2)), [0, 1, 2], 0), "dim"),
        ((np.ones((0, 2)), [], 2), "features"),
        ((np.ones((3, 2)), [0, 1, 2], 2, 0.0), "shrinkage"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(UsageError, match=f"`{message}`"):
        within_class_whitening(*arguments)


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_counted(lost):
    features = np.ones((4, 3))
    features[1:3, 0] = lost
    with pytest.raises(UsageError, match="`features` must be finite.*2 of 4 r"):
        within_class_whitening(features, [0, 0, 1, 1], 2)
