import hashlib
import subprocess
import sys

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.index.ann_recall import ann_recall_at_k
from keras_dml.evaluation.index.scann import ScannIndex
from keras_dml.evaluation.index.scann_searcher import ScannShape

pytest.importorskip("scann")

METRICS = ("cosine", "euclidean", "dot")


def clusters(rows, dim=16, num_clusters=60, seed=0):
    """Rows around centers that any seed shares."""
    centers = np.random.default_rng(0).standard_normal((num_clusters, dim))
    generator = np.random.default_rng(seed)
    noise = 0.5 * generator.standard_normal((rows, dim))
    labels = generator.integers(num_clusters, size=rows)
    return (centers[labels] + noise).astype("float32")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "shape, least", [("brute_force", 1.0), ("hashing", 0.98), ("tree", 0.95)]
)
def test_recall_on_clusters(metric, shape, least):
    references, queries = clusters(4000), clusters(200, seed=1)
    index = ScannIndex(metric, shape, leaves_to_search=20)
    index.build(references)
    exact = ExactIndex(metric).build(references)
    assert index.trained_shape.name == shape
    assert index.exact == (shape == "brute_force")
    for k in (1, 10, 100):
        assert ann_recall_at_k(index, queries, k, exact) >= least


def test_more_leaves_and_candidates_find_more():
    references, queries = clusters(4000), clusters(200, seed=1)
    index = ScannIndex(num_leaves=60, leaves_to_search=1).build(references)
    exact = ExactIndex().build(references)
    nearest, _ = exact.search(queries, 10)

    def recall(**options):
        found, _ = index.search(queries, 10, **options)
        pairs = zip(found.tolist(), nearest.tolist(), strict=True)
        return np.mean([len({*a} & {*b}) / 10 for a, b in pairs])

    by_leaves = [recall(leaves_to_search=count) for count in (1, 5, 60)]
    by_candidates = [
        recall(leaves_to_search=60, reorder=count) for count in (10, 40, 4000)
    ]
    assert by_leaves[0] < by_leaves[1] < by_leaves[2]
    assert by_candidates[0] < by_candidates[1] < by_candidates[2] == 1.0
    assert recall() == by_leaves[0]


@pytest.mark.parametrize(
    "rows, name", [(300, "brute_force"), (20_000, "hashing")]
)
def test_the_shape_goes_by_size(rows, name):
    index = ScannIndex().build(clusters(rows, dim=4))
    assert index.trained_shape == ScannShape(name)


def test_no_list_is_short():
    # One leaf of thirty holds fewer rows than are asked for.
    index = ScannIndex(num_leaves=30, leaves_to_search=1).build(clusters(300))
    found, scores = index.search(clusters(5, seed=1), 290)
    assert np.isfinite(scores).all()
    assert all(len(set(row)) == 290 for row in found.tolist())


@pytest.mark.parametrize("dim", [1, 2, 3, 17])
@pytest.mark.parametrize("metric", METRICS)
def test_any_number_of_dimensions(dim, metric):
    references = clusters(300, dim)
    index = ScannIndex(metric, "tree", leaves_to_search=17, reorder=300)
    found, _ = index.build(references).search(references[:20], 5)
    expected, _ = (
        ExactIndex(metric).build(references).search(references[:20], 5)
    )
    # Many directions of one dimension tie.
    if not (metric == "cosine" and dim == 1):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", ["hashing", "tree"])
def test_training_is_deterministic(shape, tmp_path):
    for name in ("a", "b"):
        ScannIndex(shape=shape).build(clusters(2000)).save(tmp_path / name)
    found = digests(tmp_path / "a")
    assert len(found) >= 5 and found == digests(tmp_path / "b")


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_batches_do_not_change_neighbors():
    references, queries = clusters(4000), clusters(50, seed=1)
    index = ScannIndex(shape="tree").build(references)
    whole, _ = index.search(queries, 10)
    single = [index.search(query[None], 10)[0][0] for query in queries]
    np.testing.assert_array_equal(whole, single)


def test_recall_stays_when_references_come_and_go():
    references, queries = clusters(4000), clusters(100, seed=1)
    for shape in ("hashing", "tree"):
        index = ScannIndex(shape=shape, leaves_to_search=20)
        index.build(references[:3000])
        index.add(references[3000:], np.arange(3000, 4000))
        index.remove(np.arange(0, 4000, 7))
        assert ann_recall_at_k(index, queries, 10) >= 0.95


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"metric": "cosinus"}, "`metric` must be one of"),
        ({"shape": "graph"}, "`shape` must be one of"),
        ({"shape": "hashing", "num_leaves": 5}, "`num_leaves` is for a tree"),
        ({"num_leaves": 0}, "`num_leaves` must be a positive"),
        ({"leaves_to_search": 0}, "`leaves_to_search` must be a positive"),
        ({"reorder": -1}, "`reorder` must be a positive"),
        ({"dimensions_per_block": 0}, "`dimensions_per_block` must be"),
        ({"anisotropic_threshold": 1.5}, "`anisotropic_threshold` must be"),
    ],
)
def test_refuses_arguments(arguments, message):
    with pytest.raises(UsageError, match=message):
        ScannIndex(**arguments)


def test_refuses_options_of_a_search():
    index = ScannIndex().build(clusters(20))
    with pytest.raises(UsageError, match="`reorder` must be a positive"):
        index.search(clusters(1), 1, reorder=0)


def test_where_scann_cannot_be_loaded():
    script = """
import sys
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.registry import make_index
from keras_dml.evaluation.index.scann import ScannIndex
assert "scann" not in sys.modules
sys.modules["scann"] = None
for make in (ScannIndex, lambda: make_index("scann")):
    try:
        make()
    except UsageError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    refusal, by_name = done.stdout.splitlines()
    assert by_name == refusal
    assert refusal.startswith("`ScannIndex` needs ScaNN 1.4.2")
    for hint in ("'keras-dml[scann]'", "Linux", "TensorFlow 2.20"):
        assert hint in refusal
