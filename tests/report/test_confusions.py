import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import evaluate
from keras_dml.report.confusions import Confusion, class_rows, confusions

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(6), 5)
ROWS = (
    RNG.normal(size=(6, 3))[LABELS] + 0.8 * RNG.normal(size=(30, 3))
).astype("float32")
NAMES = [f"kind {label}" for label in range(6)]


def embeddings(**more):
    ids = [f"image {row}" for row in range(30)]
    return EmbeddingSet(ROWS, LABELS, ids, class_names=NAMES, **more)


def test_the_surest_query_stands_for_a_confusion():
    angles = np.array([1.0, 0.5, 0.98, 0.51])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    labels = np.array([0, 0, 1, 1])
    embeddings = EmbeddingSet(rows.astype("float32"), labels)
    assert confusions(embeddings, normalize=True) == [
        Confusion(0, 1, count=2, of=2, query=1, found=3),
        Confusion(1, 0, count=2, of=2, query=3, found=1),
    ]


def test_queries_are_taken_for_the_gallery_alone():
    role = np.where(np.arange(30) % 3, "gallery", "query")
    for one in confusions(embeddings(role=role), normalize=True):
        assert one.query % 3 == 0 and one.found % 3
        queries = np.flatnonzero(LABELS[role == "query"] == one.label)
        assert one.count <= one.of == len(queries)


@pytest.mark.parametrize("normalize", [True, False])
def test_classes_name_what_they_are_taken_for(normalize):
    result = evaluate(ROWS, LABELS, normalize=normalize, per_class=True).exact
    confused = confusions(embeddings(), normalize)
    rows = class_rows(result.per_class, embeddings(), confused)
    assert {row.name for row in rows} == set(NAMES)
    means = [row.values[2] for row in rows]
    assert means == sorted(means)
    unit = ROWS
    if normalize:
        unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    gaps = np.square(unit[:, None] - unit[None]).sum(axis=-1)
    np.fill_diagonal(gaps, np.inf)
    nearest = LABELS[gaps.argmin(axis=1)]
    for row in rows:
        label = NAMES.index(row.name)
        wrong = nearest[(label == LABELS) & (nearest != label)]
        if not len(wrong):
            assert row.taken_for == ""
            continue
        counts = np.bincount(wrong)
        expected = f"{NAMES[counts.argmax()]} ({counts.max()})"
        assert row.taken_for == expected


def test_each_label_of_an_image_is_taken_for_each_of_the_other():
    angles = np.array([0.0, 0.1, 1.0, 1.1])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    labels = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 1]], bool)
    names = ["a", "b", "c"]
    embeddings = EmbeddingSet(rows, labels, class_names=names)
    found = confusions(embeddings, normalize=True)
    assert [(one.label, one.other, one.count, one.of) for one in found] == [
        (0, 2, 1, 2),
        (1, 2, 1, 1),
        (2, 0, 1, 3),
        (2, 1, 1, 3),
    ]
    result = evaluate(rows, labels, per_class=True).exact
    taken = class_rows(result.per_class, embeddings, found)
    assert {row.name: row.taken_for for row in taken} == {
        "a": "c (1)",
        "b": "c (1)",
        "c": "a (1)",
    }
