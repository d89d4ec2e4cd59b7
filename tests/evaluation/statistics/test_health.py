import functools

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    collapse_warning,
    effective_dim,
    embedding_health,
    embedding_spectrum,
    mean_similarities,
    participation_ratio,
    proxy_occupancy,
)


def make(rows=60, dim=7, seed=0):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, dim)) * np.arange(1, dim + 1)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("rows", [3, 60, 3000])
def test_spectrum_against_numpy(rows, normalize):
    embeddings = make(rows) + 3.0
    plain = embeddings
    if normalize:
        plain = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    singular = np.linalg.svd(plain - plain.mean(axis=0), compute_uv=False)
    expected = np.zeros(7)
    expected[: len(singular)] = singular**2 / np.sum(singular**2)
    spectrum = embedding_spectrum(embeddings, normalize)
    np.testing.assert_allclose(spectrum, expected, atol=1e-6)
    assert spectrum.sum() == pytest.approx(1.0)
    assert (np.diff(spectrum) <= 1e-12).all()


@pytest.mark.parametrize("dimension", [effective_dim, participation_ratio])
def test_equal_axes_are_counted(dimension):
    for count in (1, 2, 5, 8):
        spectrum = np.zeros(8)
        spectrum[:count] = 1 / count
        assert dimension(spectrum) == pytest.approx(count)
    assert dimension(np.zeros(8)) == 0.0


def test_dimensions_against_the_formulas():
    spectrum = embedding_spectrum(make())
    entropy = -sum(s * np.log(s) for s in spectrum)
    assert effective_dim(spectrum) == pytest.approx(np.exp(entropy))
    assert participation_ratio(spectrum) == pytest.approx(
        1 / sum(s**2 for s in spectrum)
    )
    assert 1 < participation_ratio(spectrum) < effective_dim(spectrum) < 7


def test_neither_scale_nor_rotation_changes_the_dimension():
    embeddings = make()
    rotation = np.linalg.qr(make(7, seed=1))[0]
    expected = effective_dim(embedding_spectrum(embeddings, False))
    moved = 30 * embeddings @ rotation
    actual = effective_dim(embedding_spectrum(moved, False))
    assert actual == pytest.approx(expected, rel=1e-5)


def test_similarities_against_loops():
    embeddings, labels = make(40) + 1.0, np.arange(40) % 6
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    pairs = {True: [], False: []}
    for i in range(40):
        for j in range(40):
            if i != j:
                pairs[labels[i] == labels[j]].append(unit[i] @ unit[j])
    positive, negative = mean_similarities(embeddings, labels)
    assert positive == pytest.approx(np.mean(pairs[True]), abs=1e-6)
    assert negative == pytest.approx(np.mean(pairs[False]), abs=1e-6)


def test_similarities_of_rows_with_several_labels_against_loops():
    embeddings = make(40) + 1.0
    generator = np.random.default_rng(0)
    sets = [set(generator.choice(9, 2).tolist()) for _ in range(40)]
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    pairs = {True: [], False: []}
    for i, j in np.argwhere(~np.eye(40, dtype=bool)):
        pairs[bool(sets[i] & sets[j])].append(unit[i] @ unit[j])
    positive, negative = mean_similarities(embeddings, sets)
    assert positive == pytest.approx(np.mean(pairs[True]), abs=1e-6)
    assert negative == pytest.approx(np.mean(pairs[False]), abs=1e-6)
    single = np.arange(40) % 6
    assert mean_similarities(
        embeddings, np.eye(6, dtype=bool)[single]
    ) == pytest.approx(mean_similarities(embeddings, single), abs=1e-6)
    matrix = np.eye(9, 6, dtype=bool)
    assert embedding_health(make(9, 12), matrix)["class_dim"] == 5


def test_similarities_without_pairs_are_nan():
    positive, negative = mean_similarities(make(3), [0, 0, 0])
    assert np.isnan(negative) and np.isfinite(positive)
    positive, negative = mean_similarities(make(3), [0, 1, 2])
    assert np.isnan(positive) and np.isfinite(negative)


@pytest.mark.parametrize("normalize", [True, False])
def test_occupancy_against_loops(normalize):
    embeddings, proxies = abs(make(1500, 3)), make(40, 3, seed=1)
    used = set()
    for row in embeddings:
        if normalize:
            norms = np.linalg.norm(proxies, axis=1)
            used.add(int(np.argmax(proxies @ row / norms)))
        else:
            distances = np.sum((proxies - row) ** 2, axis=1)
            used.add(int(np.argmin(distances)))
    occupancy = proxy_occupancy(embeddings, proxies, normalize)
    assert occupancy == len(used) / 40 < 1


def test_health_of_clear_classes():
    labels = np.arange(60) % 3
    health = embedding_health(np.eye(3)[labels] * 2, labels, np.eye(3))
    assert health == pytest.approx(
        {
            "effective_dim": 2.0,
            "participation_ratio": 2.0,
            "class_dim": 2.0,
            "mean_norm": 2.0,
            "duplicates": 57 / 60,
            "positive_similarity": 1.0,
            "negative_similarity": 0.0,
            "similarity_gap": 1.0,
            "proxy_occupancy": 1.0,
        }
    )
    assert all(type(value) is float for value in health.values())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("normalize", [True, False])
def test_health_of_one_point(normalize, dtype):
    rows = np.tile([0.3, -1.7, 0.01], (50, 1)).astype(dtype)
    health = embedding_health(rows, np.arange(50) % 5, np.eye(3), normalize)
    assert health["effective_dim"] == health["participation_ratio"] == 0.0
    assert health["negative_similarity"] == pytest.approx(1.0)
    assert health["similarity_gap"] == pytest.approx(0.0, abs=1e-6)
    assert health["duplicates"] == 49 / 50
    assert health["proxy_occupancy"] == pytest.approx(1 / 3)


def test_health_of_a_line():
    rows = np.linspace(-1, 1, 40)[:, None] * [[1.0, 2.0, 3.0]]
    health = embedding_health(rows, normalize=False)
    assert health["effective_dim"] == pytest.approx(1.0, abs=1e-4)
    assert set(health) == {
        "effective_dim",
        "participation_ratio",
        "class_dim",
        "mean_norm",
        "duplicates",
    }


def test_refuses():
    with pytest.raises(UsageError, match="first is row 2"):
        embedding_health([[1.0], [2.0], [np.nan]])
    with pytest.raises(UsageError, match=r"must have the shape \(2,\)"):
        embedding_health([[1.0], [2.0]], [0])
    with pytest.raises(UsageError, match="`labels` must have one row or set"):
        embedding_health(np.eye(3), [{0}, {1}])
    with pytest.raises(UsageError, match="shape .rows, 1."):
        embedding_health([[1.0, 2.0]], proxies=[[1.0]])
    for measure in (
        embedding_health,
        embedding_spectrum,
        functools.partial(proxy_occupancy, proxies=[[1.0]]),
        lambda rows, normalize: collapse_warning(
            embedding_health(rows, [0, 1]), normalize
        ),
    ):
        with pytest.raises(UsageError, match="`normalize` must be True or"):
            measure([[1.0], [2.0]], normalize="false")


def clustered(classes, dim, noise=0.1, offset=0.0):
    generator = np.random.default_rng(0)
    labels = np.arange(20 * classes) % classes
    rows = generator.standard_normal((classes, dim))[labels] + offset
    return rows + noise * generator.standard_normal(rows.shape), labels


@pytest.mark.parametrize(
    "classes, dim", [(2, 64), (3, 64), (4, 3), (60, 2), (60, 3), (60, 64)]
)
@pytest.mark.parametrize("normalize", [True, False])
def test_clear_classes_are_no_collapse(classes, dim, normalize):
    rows, labels = clustered(classes, dim)
    health = embedding_health(rows, labels, normalize=normalize)
    assert collapse_warning(health, normalize) is None


def test_reasons():
    rows, labels = clustered(60, 16, offset=30.0)
    health = embedding_health(rows, labels)
    assert "point one way" in collapse_warning(health)
    # Distances of raw embeddings do not see an offset.
    health = embedding_health(rows, labels, normalize=False)
    assert collapse_warning(health, normalize=False) is None
    rows = rows[:, :1] * np.ones(16) + 1e-3 * rows
    health = embedding_health(rows, labels, normalize=False)
    reason = collapse_warning(health, normalize=False)
    assert reason == (
        "The embeddings fill 1.00 dimensions, where separate classes would "
        "span 16."
    )
