import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    AlphaQueryExpansion,
    ExactIndex,
    evaluate,
    evaluate_lists,
    evaluate_retrieval,
    retrieval_metrics,
)
from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.retrieval import measure
from tests.evaluation import naive

K = (1, 2, 8, 1000)


def clustered(rows, dim=6, classes=5, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    centers = generator.standard_normal((classes, dim))
    embeddings = centers[labels] + generator.standard_normal((rows, dim))
    return embeddings.astype("float32"), labels


def grid(rows, seed=0):
    """Signs: many duplicates, and ties that are exact in every metric."""
    generator = np.random.default_rng(seed)
    embeddings = generator.choice([-1.0, 1.0], (rows, 4)).astype("float32")
    return embeddings, generator.integers(4, size=rows)


def expected(queries, labels, references, gallery, ids, query_ids, normalize):
    metric = "cosine" if normalize else "euclidean"
    lists = naive.neighbors(queries, references, ids, query_ids, metric)
    return naive.metrics(lists, labels, gallery, K)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [clustered, grid])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_metrics_against_loops(make, dtype, normalize):
    embeddings, labels = make(40)
    embeddings = embeddings.astype(dtype)
    ids = np.arange(40)
    metrics, lone = expected(
        embeddings, labels, embeddings, labels, ids, ids, normalize
    )
    result = evaluate_retrieval(embeddings, labels, k=K, normalize=normalize)
    assert result.metrics == pytest.approx(metrics, abs=1e-12)
    assert result.num_lone == lone
    assert (result.num_queries, result.num_references) == (40, 40)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [clustered, grid])
@pytest.mark.parametrize("with_ids", [True, False])
def test_gallery_against_loops(make, normalize, with_ids):
    references, gallery = make(30)
    queries, labels = make(17, seed=1)
    labels[3], ids, query_ids = 99, np.arange(30), None
    if with_ids:
        ids = np.array([f"image-{i}" for i in range(30)])
        query_ids = np.array([f"image-{i}" for i in range(20, 37)])
        queries[:10], labels[:10] = references[20:], gallery[20:]
    metrics, lone = expected(
        queries, labels, references, gallery, ids, query_ids, normalize
    )
    result = evaluate_retrieval(
        queries,
        labels,
        references,
        gallery,
        query_ids=query_ids,
        reference_ids=ids if with_ids else None,
        k=K,
        normalize=normalize,
    )
    assert result.metrics == pytest.approx(metrics, abs=1e-12)
    assert result.num_lone == lone


def test_ties_are_broken_by_id_and_not_by_order():
    embeddings, labels = grid(50)
    ids = np.random.default_rng(2).permutation(50)
    direct = retrieval_metrics(embeddings, labels, query_ids=ids, k=K)
    order = np.argsort(ids)
    sorted_first = retrieval_metrics(
        embeddings[order], labels[order], query_ids=ids[order], k=K
    )
    assert direct == pytest.approx(sorted_first, abs=1e-12)
    assert direct != retrieval_metrics(embeddings, labels, k=K)


def test_collapsed_embeddings_score_as_chance():
    labels = np.arange(400) % 2
    metrics = retrieval_metrics(np.ones((400, 8)), labels, k=1)
    assert metrics["r_precision"] == pytest.approx(0.5, abs=0.01)


def test_perfect_embeddings_score_one():
    labels = np.arange(300) % 3
    result = evaluate_retrieval(np.eye(3)[labels], labels, clustering=True)
    assert set(result.metrics.values()) == {1.0}
    assert result.num_lone == 0


def test_a_duplicate_of_the_query_is_found_but_never_itself():
    embeddings = np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]])
    result = evaluate_retrieval(embeddings, [0, 0, 1, 1], k=1)
    np.testing.assert_array_equal(result.per_query["recall@1"], [1, 1, 1, 0])


def test_raw_embeddings_rank_by_euclidean_distance():
    embeddings = np.array([[1.0, 0], [9, 0], [1, 1], [9, 4]])
    labels = [0, 1, 0, 1]
    assert retrieval_metrics(embeddings, labels, k=1)["recall@1"] == 0.0
    raw = retrieval_metrics(embeddings, labels, k=1, normalize=False)
    assert raw["recall@1"] == 1.0


def test_lone_queries_are_counted_and_left_out():
    embeddings, labels = clustered(20)
    labels[0] = 77
    result = evaluate_retrieval(embeddings, labels)
    assert result.num_lone == 1
    assert np.isnan(result.per_query["map@r"][0])
    assert result.metrics["map@r"] == pytest.approx(
        np.mean(result.per_query["map@r"][1:])
    )


def test_extra_metrics_against_loops():
    embeddings, labels = clustered(40)
    lists = naive.neighbors(
        embeddings, embeddings, np.arange(40), np.arange(40), "cosine"
    )
    names = ("map@3", "precision@5", "map", "recall@16")
    metrics = retrieval_metrics(embeddings, labels, k=1, extra_metrics=names)
    found = {name: [] for name in names}
    for label, row in zip(labels, lists, strict=True):
        hits = [labels[j] == label for j in row]
        precisions = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits))]
        count = sum(hits)
        found["map@3"].append(
            sum(precisions[i] for i in range(3) if hits[i]) / min(count, 3)
        )
        found["precision@5"].append(sum(hits[:5]) / 5)
        found["map"].append(
            sum(p for p, hit in zip(precisions, hits, strict=True) if hit)
            / count
        )
        found["recall@16"].append(any(hits[:16]))
    for name in names:
        assert metrics[name] == pytest.approx(np.mean(found[name]), abs=1e-12)


def test_map_at_the_size_of_every_class_is_map_at_r():
    embeddings, _ = clustered(40)
    labels = np.arange(40) % 8
    metrics = retrieval_metrics(embeddings, labels, extra_metrics=["map@4"])
    assert metrics["map@4"] == metrics["map@r"]


def test_one_class_is_always_found():
    embeddings, _ = clustered(30)
    result = evaluate(embeddings, np.zeros(30, int), per_class=True).exact
    assert set(result.metrics.values()) == {1.0}
    assert result.per_class.worst("map@r") == (0, 1.0)


def test_several_labels_as_matrix_and_as_sets_against_loops():
    embeddings, _ = clustered(40)
    matrix = np.random.default_rng(5).random((40, 6)) < 0.25
    matrix[7] = False
    sets = [set(np.flatnonzero(row)) for row in matrix]
    lists = naive.neighbors(
        embeddings, embeddings, np.arange(40), np.arange(40), "cosine"
    )
    expected, lone = naive.metrics(lists, sets, sets, K, shares=True)
    for labels in (matrix, matrix.astype("uint8"), sets, np.array(sets)):
        result = evaluate_retrieval(embeddings, labels, k=K)
        assert result.metrics == pytest.approx(expected, abs=1e-12)
        assert result.num_lone == lone >= 1


def test_several_labels_in_a_gallery():
    references, _ = clustered(30)
    queries, _ = clustered(17, seed=1)
    generator = np.random.default_rng(5)
    gallery = [set(generator.choice(list("abcdef"), 2)) for _ in range(30)]
    labels = [set(generator.choice(list("abcdefg"), 2)) for _ in range(17)]
    lists = naive.neighbors(queries, references, range(30), None, "cosine")
    expected, lone = naive.metrics(lists, labels, gallery, K, shares=True)
    result = evaluate_retrieval(queries, labels, references, gallery, k=K)
    assert result.metrics == pytest.approx(expected, abs=1e-12)
    assert result.num_lone == lone


def test_sets_of_one_label_equal_single_labels():
    embeddings, labels = clustered(40)
    sets = [{label} for label in labels.tolist()]
    single = evaluate(embeddings, labels, per_class=True).exact
    several = evaluate(embeddings, sets, per_class=True).exact
    assert several.metrics == pytest.approx(single.metrics, abs=1e-15)


def test_intervals_of_queries_and_of_classes():
    embeddings, labels = clustered(200, classes=20)
    by_query = evaluate(embeddings, labels, intervals="queries").exact
    by_class = evaluate(embeddings, labels, intervals="classes").exact
    for result, unit in ((by_query, "queries"), (by_class, "classes")):
        assert set(result.intervals) == set(result.metrics)
        for name, interval in result.intervals.items():
            assert interval.low < interval.value < interval.high
            assert interval.value == pytest.approx(result.metrics[name])
            assert interval.unit == unit
    again = evaluate(embeddings, labels, intervals="classes").exact
    assert again.intervals == by_class.intervals
    assert by_query.metrics == by_class.metrics
    assert evaluate_retrieval(embeddings, labels).intervals == {}


def test_the_worst_class_is_among_the_metrics_when_asked():
    embeddings, labels = clustered(60)
    result = evaluate(embeddings, labels, per_class=True).exact
    for name, values in result.per_query.items():
        means = [values[labels == label].mean() for label in range(5)]
        worst = result.metrics[f"{name}_worst_class"]
        assert worst == pytest.approx(min(means))
        assert result.per_class.worst(name) == (np.argmin(means), worst)
    assert evaluate_retrieval(embeddings, labels).per_class is None


def test_progress_counts_every_query_of_every_block():
    # So many references that the scores do not fit into one block.
    gallery, labels = clustered(300_000, dim=2, classes=150_000)
    counts = []
    inputs = RetrievalInputs(gallery[:300], labels[:300], gallery, labels)
    measure(inputs, ["recall@1"], progress=counts.append)
    assert sum(counts) == 300
    assert len(counts) > 1


def test_progress_counts_every_query_when_reranking():
    embeddings, labels = clustered(40)
    counts = []
    inputs = RetrievalInputs(embeddings, labels)
    measure(inputs, ["recall@1"], AlphaQueryExpansion(), counts.append)
    assert counts == [40]


def test_lists_of_an_index_give_the_same_metrics():
    embeddings, labels = clustered(60)
    ids = np.arange(60)
    index = ExactIndex().build(embeddings, ids)
    lists, _ = index.search(embeddings, 30, exclude_ids=ids)
    listed = evaluate_lists(
        lists, labels, ids, labels, ids, ["recall@8", "map@r", "r_precision"]
    )
    whole = retrieval_metrics(embeddings, labels)
    for name, value in listed.metrics.items():
        assert value == whole[name]
    with pytest.raises(UsageError, match="`reciprocal_rank` needs"):
        evaluate_lists(lists, labels, ids, labels, ids, ["mrr"])
    with pytest.raises(UsageError, match="`metrics` must be .* one name"):
        evaluate_lists(lists, labels, ids, labels, ids, [])


def test_string_labels_equal_integer_labels():
    embeddings, labels = clustered(30)
    named = [f"class {label}" for label in labels]
    assert retrieval_metrics(embeddings, named) == retrieval_metrics(
        embeddings, labels
    )


def test_non_contiguous_embeddings():
    embeddings, labels = clustered(30)
    wide = np.zeros((60, 12), "float32")
    wide[::2, ::2] = embeddings
    assert retrieval_metrics(wide[::2, ::2], labels) == retrieval_metrics(
        embeddings, labels
    )


def test_clustering_adds_nmi_and_ami_in_both_averages():
    embeddings, labels = clustered(60)
    metrics = retrieval_metrics(
        embeddings,
        labels,
        clustering={"init": "k-means++", "num_starts": 3},
    )
    assert 0.1 < metrics["nmi"] <= metrics["nmi_geometric"] < 0.9
    assert 0.1 < metrics["ami"] <= metrics["ami_geometric"]
    assert metrics["ami"] < metrics["nmi"]
    assert metrics == retrieval_metrics(
        embeddings,
        labels,
        clustering={"init": "k-means++", "num_starts": 3},
    )


def test_both_functions_share_what_changes_the_metrics():
    whole = inspect.signature(evaluate_retrieval).parameters
    assert inspect.signature(retrieval_metrics).parameters == whole


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((3,), [0, 0, 0]), r"`query_embeddings` must have the shape"),
        (((0, 4), []), "`query_embeddings` must have at least one row"),
        (((3, 2), [0, 0]), r"`query_labels` must have the shape \(3,\)"),
        (((3, 2), [0.5, 0, 0]), "`query_labels` must hold integers"),
        (((3, 2), [0, 1, 2]), "needs a query with a positive reference"),
        (((3, 2), [0] * 3, np.ones((0, 2)), []), "`reference_embeddings`"),
        (((3, 2), [0] * 3, np.ones((4, 3)), [0] * 4), "shape .rows, 2."),
        (((3, 2), [0] * 3, np.ones((4, 2))), "must be given together"),
        (((3, 2), [0] * 3, np.ones((4, 2)), ["a"] * 4), "both be integers"),
    ],
)
def test_refuses(arguments, message):
    shape, *rest = arguments
    with pytest.raises(UsageError, match=message):
        retrieval_metrics(np.ones(shape), *rest)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"k": 0}, "`k` must be a positive integer"),
        ({"normalize": "false"}, "`normalize` must be True or False"),
        ({"k": (1, 2.5)}, "`k` must be a positive integer"),
        ({"query_ids": [1, 1, 2]}, "must be unique.*: 1 more"),
        ({"query_ids": [1, 2]}, r"`query_ids` must have the shape \(3,\)"),
        ({"reference_ids": [1, 2, 3]}, "needs `reference_embeddings`"),
        ({"extra_metrics": "map@10"}, "must be several names"),
        ({"extra_metrics": ["map@0"]}, "A metric must be one of"),
        ({"extra_metrics": ["ndcg@5"]}, "Received: 'ndcg@5'"),
        ({"extra_metrics": [5]}, "A metric must be one of.*Received: 5"),
        ({"extra_metrics": 5}, "must be several names"),
        ({"query_ids": [[1], [1, 2], [2]]}, "`query_ids` must be"),
    ],
)
def test_refuses_arguments(arguments, message):
    with pytest.raises(UsageError, match=message):
        evaluate_retrieval(np.ones((3, 2)), [0, 0, 0], **arguments)


@pytest.mark.parametrize(
    "labels, gallery, message",
    [
        ([{0}, {1}], None, "`query_labels` must have one row or set for each"),
        ([[0, 2]] * 3, None, "nothing but 0 and 1"),
        ([[0.0, 1.0]] * 3, None, "nothing but 0 and 1"),
        ([{0.5}] * 3, None, "`query_labels` must hold integers or strings"),
        ([{0}, 1, {2}], None, "`query_labels`"),
        ([[1], [1, 2], [2]], None, "`query_labels` must be one integer or"),
        ([{1, "a"}, {"a"}, {2}], None, "`query_labels` must be all integers"),
        ([1, "a", 2], None, "`query_labels` must be all integers"),
        (np.eye(3, dtype=int), np.eye(4, dtype=int), "must have one form"),
        (np.eye(3, dtype=int), [{0}] * 4, "must have one form"),
        ([{"a"}] * 3, [{0}] * 4, "both be integers or both strings"),
        ([{0}, {1}, set()], None, "needs a query with a positive"),
        ([set()] * 3, None, "needs a query with a positive"),
    ],
)
def test_refuses_labels(labels, gallery, message):
    references = None if gallery is None else np.ones((4, 2))
    with pytest.raises(UsageError, match=message):
        evaluate_retrieval(np.ones((3, 2)), labels, references, gallery)


def test_refuses_clusters_of_several_labels():
    with pytest.raises(UsageError, match="needs one label for each"):
        evaluate_retrieval(np.ones((2, 2)), [{0}, {0}], clustering=True)


def test_refuses_ids_on_one_side_alone():
    ones, labels = np.ones((3, 2)), [0, 0, 0]
    with pytest.raises(UsageError, match="must be given together"):
        retrieval_metrics(ones, labels, ones + 1, labels, query_ids=[1, 2, 3])


def test_refuses_the_queries_as_their_own_references():
    ones, labels = np.ones((3, 2)), [0, 0, 0]
    with pytest.raises(UsageError, match="each query finds itself"):
        retrieval_metrics(ones, labels, ones, labels)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_refuses_values_that_are_not_finite_and_names_the_row(value):
    embeddings = np.ones((5, 2))
    embeddings[3:, 1] = value
    with pytest.raises(UsageError, match=r"2 row\(s\).* first is row 3"):
        retrieval_metrics(embeddings, [0] * 5)


def test_refuses_references_that_are_not_finite():
    references = np.ones((5, 2), "float16")
    references[2, 0] = np.nan
    with pytest.raises(UsageError, match="`reference_emb.* first is row 2"):
        evaluate_retrieval(np.ones((3, 2)), [0] * 3, references, [0] * 5)


def test_imports_without_tensorflow():
    root = Path(__file__).resolve().parents[2]
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from keras_dml.evaluation import retrieval_metrics\n"
        "retrieval_metrics([[1.0], [2.0]], [0, 0], clustering=True)\n"
        "assert 'keras' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
