import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import cluster, normalized_mutual_information


def blobs(rows=120, classes=4, spread=0.05):
    generator = np.random.default_rng(0)
    labels = np.arange(rows) % classes
    points = 5 * np.eye(classes)[labels]
    return points + spread * generator.standard_normal(points.shape), labels


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_clear_blobs_are_found(init):
    points, labels = blobs()
    clusters = cluster(points, 4, init=init, num_starts=10)
    assert normalized_mutual_information(labels, clusters) == 1.0


def test_seed_fixes_the_clusters():
    points = np.random.default_rng(0).standard_normal((90, 3))
    first = cluster(points, 9, seed=1)
    np.testing.assert_array_equal(first, cluster(points, 9, seed=1))
    assert (first != cluster(points, 9, seed=2)).any()


def test_many_clusters_finish():
    points = np.random.default_rng(0).standard_normal((2000, 16))
    clusters = cluster(points, 700)
    assert len(np.unique(clusters)) == 700


def test_fewer_points_than_clusters_by_duplication():
    assert cluster(np.ones((6, 2)), 3).max() < 3


def test_refuses():
    with pytest.raises(UsageError, match="at most the number of embeddings"):
        cluster(np.ones((3, 2)), 4)
    with pytest.raises(UsageError, match="first is row 1"):
        cluster([[0.0], [np.nan]], 1)
