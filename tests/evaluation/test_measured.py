import inspect
import sys

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet, save_embeddings
from keras_dml.errors import UsageError
from keras_dml.evaluation import KReciprocal, evaluate, evaluate_retrieval
from keras_dml.evaluation.index import scann_searcher
from keras_dml.run.evaluate import evaluate_run

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(12), 6)
ROWS = (RNG.normal(size=(12, 8))[LABELS] + RNG.normal(size=(72, 8))).astype(
    "float32"
)


def test_without_roles_all_rows_search_all_rows():
    measured = evaluate(EmbeddingSet(ROWS, LABELS), k=(1, 3))
    expected = evaluate_retrieval(ROWS, LABELS, k=(1, 3)).metrics
    assert measured.flat() == expected
    assert [row["metric"] for row in measured.rows()] == list(expected)


def test_the_embeddings_of_a_run_are_measured_with_the_same_options():
    """One command passes its options to either function."""
    of_run, of_rows = (
        inspect.signature(function).parameters
        for function in (evaluate_run, evaluate)
    )
    assert of_run.keys() - {"run", "source", "data_dir"} <= of_rows.keys()


def test_with_roles_queries_search_the_gallery():
    role = np.where(np.arange(72) % 3 == 0, "query", "gallery")
    measured = evaluate(EmbeddingSet(ROWS, LABELS, role=role), normalize=False)
    queries = role == "query"
    expected = evaluate_retrieval(
        ROWS[queries],
        LABELS[queries],
        ROWS[~queries],
        LABELS[~queries],
        normalize=False,
    )
    assert measured.exact.metrics == expected.metrics
    assert measured.exact.num_references == 48


def test_what_is_asked_for_stands_beside_the_metrics():
    measured = evaluate(
        EmbeddingSet(ROWS, LABELS, class_names=[f"c{n}" for n in range(12)]),
        intervals=True,
        per_class=True,
        rerank="k_reciprocal",
        clustering=True,
    )
    expected = evaluate_retrieval(ROWS, LABELS).with_intervals(LABELS)
    by_hand = evaluate(ROWS, LABELS, rerank=KReciprocal()).exact
    flat = measured.flat()
    assert flat["nmi"] > 0
    assert flat["map@r_low"] == expected.intervals["map@r"].low
    assert flat["map@r_low"] < flat["map@r"] < flat["map@r_high"]
    assert flat["map@r_reranked"] == by_hand.reranked.metrics["map@r"]
    (row,) = (row for row in measured.rows() if row["metric"] == "map@r")
    assert set(row) == {"metric", "exact", "95 % interval", "k_reciprocal"}
    classes = measured.class_rows()
    assert {one["class"] for one in classes} == {f"c{n}" for n in range(12)}
    values = [one["map@r"] for one in classes]
    assert values == sorted(values)
    assert flat["map@r_worst_class"] == values[0]
    assert all(isinstance(value, float) for value in flat.values())


def test_arrays_a_set_and_a_file_measure_alike(tmp_path):
    names = LABELS.astype(str)
    expected = evaluate(EmbeddingSet(ROWS, names)).flat()
    assert evaluate(ROWS, names).flat() == expected
    assert evaluate(EmbeddingSet(ROWS), names).flat() == expected
    for name in ("rows.npz", "rows.parquet"):
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        path = tmp_path / name
        save_embeddings(path, EmbeddingSet(ROWS, names))
        assert evaluate(path).flat() == pytest.approx(expected)
        assert evaluate(str(path), LABELS).flat() == pytest.approx(expected)


def test_a_gallery_by_roles_or_as_references():
    is_query = np.arange(72) % 3 == 0
    role = np.where(is_query, "query", "gallery")
    expected = evaluate(EmbeddingSet(ROWS, LABELS, role=role)).flat()
    queries = ROWS[is_query], LABELS[is_query]
    gallery = ROWS[~is_query], LABELS[~is_query]
    assert evaluate(*queries, references=gallery).flat() == expected
    searched = EmbeddingSet(*gallery)
    assert evaluate(*queries, references=searched).flat() == expected
    with pytest.raises(UsageError, match="`references` must not be given"):
        evaluate(EmbeddingSet(ROWS, LABELS, role=role), references=gallery)


def test_more_metrics_by_name_and_intervals_by_what_is_drawn():
    measured = evaluate(
        ROWS, LABELS, k=(1, "map@3", "precision@2"), intervals="queries"
    )
    exact = evaluate_retrieval(
        ROWS, LABELS, k=1, extra_metrics=["map@3", "precision@2"]
    )
    assert measured.metrics == exact.metrics
    assert measured.exact.intervals["map@3"].unit == "queries"
    with pytest.raises(UsageError, match="`intervals` must be a boolean or"):
        evaluate(ROWS, LABELS, intervals="images")


def test_unknown_names_are_refused():
    rows = EmbeddingSet(ROWS, LABELS)
    with pytest.raises(UsageError, match="`index`.*'scan'.*'scann'"):
        evaluate(rows, index="scan")
    with pytest.raises(UsageError, match="`rerank`.*'k_reciprocal'"):
        evaluate(rows, rerank="k_reciproca")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"index": "scann"}, "needs ScaNN"),
        ({"clustering": {"init": "kmeans++"}}, "`init` .*'k-means"),
        ({"clustering": {"num_starts": 0}}, "`num_starts`"),
        (
            {"rerank": "query_expansion", "normalize": False},
            "Query expansion .*metric='euclidean'",
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(
    options, told, monkeypatch
):
    """It was found when the exact search was over, whose result was lost."""

    def never(*_):
        pytest.fail("searches")

    monkeypatch.setattr("keras_dml.evaluation.measured.measure", never)
    for name in ("scann", "scann.scann_ops.py"):
        monkeypatch.setitem(sys.modules, name, None)
    scann_searcher.import_scann.cache_clear()
    with pytest.raises(UsageError, match=told):
        evaluate(EmbeddingSet(ROWS, LABELS), **options)
    scann_searcher.import_scann.cache_clear()


def test_one_class_or_no_positive():
    alone = EmbeddingSet(ROWS, np.arange(72))
    with pytest.raises(UsageError, match="all without one"):
        evaluate(alone)
    together = evaluate(EmbeddingSet(ROWS, np.zeros(72, int)))
    assert together.metrics["recall@1"] == 1


@pytest.mark.parametrize("parted", [False, True])
def test_scann_stands_beside_exact_search(parted):
    pytest.importorskip("scann", reason="ScaNN is not installed.")
    labels = np.repeat(np.arange(40), 25)
    rows = RNG.normal(size=(40, 16))[labels] + 0.7 * RNG.normal(size=(1000, 16))
    role = np.where(np.arange(1000) % 5, "gallery", "query") if parted else None
    measured = evaluate(
        EmbeddingSet(rows, labels, role=role),
        k=(1, 10),
        index="scann",
        intervals=True,
    )
    flat = measured.flat()
    # An interval is of exact search, so that its name says so.
    assert flat["recall@1_exact_low"] <= flat["recall@1_exact"]
    assert "recall@1_low" not in flat
    assert 0.9 < flat["ann_recall@10"] <= 1
    for name in ("recall@1", "recall@10", "map@r", "r_precision"):
        assert flat[f"{name}_difference"] == pytest.approx(
            flat[name] - flat[f"{name}_exact"]
        )
        assert abs(flat[f"{name}_difference"]) < 0.05
    assert "mrr" not in flat
    (row,) = (row for row in measured.rows() if row["metric"] == "recall@1")
    columns = {"metric", "exact", "scann", "difference", "95 % interval"}
    assert set(row) == columns


@pytest.mark.parametrize("k", [0, (), None, 1.5, b"1", [b"1"], np.float32(1)])
def test_ranks_that_are_none(k):
    with pytest.raises(UsageError, match="`k` must be"):
        evaluate(np.eye(4), [0, 0, 1, 1], k=k)


def test_a_rank_of_numpy():
    measured = evaluate(np.eye(4), [0, 0, 1, 1], k=np.int64(1))
    assert "recall@1" in measured.metrics


def test_labels_that_are_no_classes():
    with pytest.raises(UsageError, match="must be below 2"):
        evaluate(np.eye(2), np.array([1, 2**64 - 1], np.uint64))
    with pytest.raises(UsageError, match="must hold text in UTF-8"):
        evaluate(np.eye(2), np.array([b"\xff", b"a"]))


def pets(labels, class_names, weights_hash=None):
    return EmbeddingSet(
        np.eye(2),
        labels,
        class_names=class_names,
        weights_hash=weights_hash,
    )


def test_classes_of_two_sets_are_compared_by_name():
    """Labels are numbers of names, which each set orders in its own way."""
    queries, gallery = (
        pets([0, 1], ["cat", "dog"]),
        pets([1, 0], ["dog", "cat"]),
    )
    measured = evaluate(queries, references=gallery, k=1, per_class=True)
    assert measured.metrics["recall@1"] == 1
    classes = {row["class"] for row in measured.class_rows()}
    assert classes == {"cat", "dog"}
    more = pets([2, 0], ["dog", "owl", "cat"])
    assert evaluate(queries, references=more, k=1).metrics["recall@1"] == 1


def test_labels_that_are_given_mean_what_they_say():
    """They are no positions in the sets' own lists of classes."""
    queries, gallery = (
        pets([0, 1], ["cat", "dog"]),
        pets([1, 0], ["dog", "cat"]),
    )
    measured = evaluate(queries, [0, 1], references=(gallery, [0, 1]), k=1)
    assert measured.metrics["recall@1"] == 1


def test_matrices_need_the_same_classes():
    queries, gallery = (
        pets(np.eye(2, dtype=int), ["cat", "dog"]),
        ["dog", "cat"],
    )
    gallery = pets(np.eye(2, dtype=int), gallery)
    with pytest.raises(UsageError, match="`references`.*same `class_names`"):
        evaluate(queries, references=gallery, k=1)
    alike = pets(np.eye(2, dtype=int), ["cat", "dog"])
    assert evaluate(queries, references=alike, k=1).metrics["recall@1"] == 1


def test_two_sets_are_of_one_model():
    one, other, unknown = (
        pets([0, 1], ["cat", "dog"], stored) for stored in ("a", "b", None)
    )
    with pytest.raises(UsageError, match="`references` must be .* a. Rec.* b."):
        evaluate(one, references=other)
    for gallery in (unknown, pets([0, 1], ["cat", "dog"], "a")):
        evaluate(one, references=gallery, k=1)


def twice(form, folder):
    """The same images as queries and as references."""
    path, names = folder / "rows.npz", [f"{row}.jpg" for row in range(72)]
    rows = EmbeddingSet(ROWS, LABELS, names)
    if form == "list":
        rows = ROWS.tolist()
        return (rows, LABELS), (rows, LABELS)
    if form == "set":
        return (rows, None), rows
    save_embeddings(path, rows)
    others = {
        "file": folder / ".." / folder.name / path.name,
        "set and file": rows,
        "file and labels": (str(path), LABELS),
    }
    return (path, None), others[form]


@pytest.mark.parametrize(
    "form", ["list", "set", "file", "set and file", "file and labels"]
)
def test_queries_do_not_search_themselves_as_references(form, tmp_path):
    """Recall@1 was 1: no id said that a reference was the query itself."""
    queries, references = twice(form, tmp_path)
    with pytest.raises(UsageError, match="`references` must hold other images"):
        evaluate(*queries, references=references, k=1)


def test_an_id_alone_does_not_make_two_images_one():
    """Two folders may each hold a `cat/1.jpg`."""
    names = [f"{row}.jpg" for row in range(72)]
    queries = EmbeddingSet(ROWS, LABELS, names)
    gallery = EmbeddingSet(ROWS + 1, LABELS, names)
    assert evaluate(queries, references=gallery).exact.num_references == 72


def test_metrics_of_an_approximate_index():
    pytest.importorskip("scann", reason="ScaNN is not installed.")
    measured = evaluate(
        ROWS, LABELS, k=(1, "map@60", "precision@2", "mrr"), index="scann"
    )
    names = {"recall@1", "r_precision", "map@r", "map@60", "precision@2"}
    assert measured.metrics.keys() == names
    for name in names:
        assert measured.metrics[name] == measured.exact.metrics[name]
    assert measured.flat()["map@60_difference"] == 0
