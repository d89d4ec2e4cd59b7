import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex

ROWS = np.eye(4)
LABELS = [0, 0, 1, 1]


def test_rows_are_queries_and_references_at_once():
    pets = EmbeddingSet(ROWS, LABELS)
    assert pets.queries.tolist() == pets.references.tolist() == [0, 1, 2, 3]
    assert not pets.has_gallery
    assert pets.ids.tolist() == [0, 1, 2, 3]
    assert pets.names.tolist() == ["0", "0", "1", "1"]


def test_roles_part_queries_from_the_gallery():
    pets = EmbeddingSet(
        ROWS, LABELS, role=["query", "gallery", "query", "gallery"]
    )
    assert pets.queries.tolist() == [0, 2]
    assert pets.references.tolist() == [1, 3]
    assert pets.has_gallery


def test_select_keeps_rows_together():
    pets = EmbeddingSet(
        ROWS, LABELS, list("abcd"), class_names=["cat", "dog"]
    ).select([3, 1])
    assert pets.ids.tolist() == ["d", "b"]
    assert pets.names.tolist() == ["dog", "cat"]
    np.testing.assert_array_equal(pets.embeddings, ROWS[[3, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 0, 1]}, "`labels`.*4 embeddings.*shape=\\(3,\\)"),
        ({"labels": 3}, "`labels` must have one row"),
        ({"labels": [1.5, 1, 2, np.nan]}, "`labels` must hold integers or"),
        ({"labels": [[0.5, -1]] * 4}, "nothing but 0 and 1"),
        ({"labels": [b"\xff", b"a", b"b", b"c"]}, "text in UTF-8"),
        ({"labels": [{1}, {1}, 2.5, None]}, "or sets.*Received: 2.5 among"),
        ({"labels": [[1], [1, 2], [2], [2]]}, "one set of them a row"),
        ({"ids": list("abca")}, "`ids` must be unique.*'a'"),
        ({"ids": list("abc")}, "`ids`"),
        ({"role": ["query"] * 3 + ["galery"]}, "'galery'"),
        ({"role": ["query"] * 4}, "`role` must name queries and a gallery"),
        ({"role": ["gallery"] * 4}, "`role` must name queries and a gallery"),
        ({"role": [1, 2, 3, 4]}, "`role` must be one of"),
        ({"role": ["query", "gallery"]}, "`role` must have the shape"),
        ({"class_names": ["cat"]}, "`labels` must be in 0..0"),
        (
            {"labels": list("aabb"), "class_names": ["cat"]},
            "`labels` must be integers",
        ),
        ({"embeddings": np.full((4, 2), np.nan)}, "first is row 0"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        EmbeddingSet(**{"embeddings": ROWS, "labels": LABELS, **arguments})


def test_class_names_are_texts_of_a_list():
    rows = np.eye(2)
    with pytest.raises(UsageError, match="`class_names` must have the shape"):
        EmbeddingSet(rows, [0, 1], class_names="ab")
    names = EmbeddingSet(rows, [0, 1], class_names=["é".encode(), b"a"])
    assert names.class_names.tolist() == ["é", "a"]


def test_the_names_of_several_labels_are_joined():
    matrix = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    named = EmbeddingSet(np.eye(3), matrix > 0, class_names=["a", "b", "c"])
    assert named.names.tolist() == ["a|c", "b", "a|c"]
    assert EmbeddingSet(np.eye(3), matrix).names.tolist() == ["0|2", "1", "0|2"]
    first, second, third = named.groups
    assert first == third != second
    with pytest.raises(UsageError, match=r"`labels` must have the shape"):
        EmbeddingSet(np.eye(3), matrix, class_names=["a", "b"])


def test_groups_are_numbers():
    for labels in (["b", "a", "b"], [7, 2, 7], [{"b"}, {"a"}, {"b"}]):
        first, second, third = EmbeddingSet(np.eye(3), labels).groups
        assert first == third != second
        assert isinstance(first, np.integer)


def test_sets_of_labels_print_and_are_named():
    pets = EmbeddingSet(np.eye(3, 2) + 0.1, [{"cat", "dog"}, {"dog"}, {"owl"}])
    assert repr(pets).endswith("of 2 dimensions, 3 classes")
    assert pets.names.tolist() == ["cat|dog", "dog", "owl"]
    assert len(set(pets.groups)) == 3
    assert len(pets.select([0, 2])) == 2


def test_no_rows_may_have_labels_and_ids():
    none = EmbeddingSet(np.zeros((0, 4)), [], [])
    assert none.labels.dtype == none.ids.dtype == np.int64
    assert len(none) == 0 and none.names.size == 0
    words = np.zeros(0, str)
    assert EmbeddingSet(np.zeros((0, 4)), words, words).ids.dtype.kind == "U"


def test_integers_may_be_objects():
    """So they come from a column of pandas with missing values before."""
    numbers = np.array([3, np.int32(1), np.int64(2), 0], object)
    rows = EmbeddingSet(ROWS, numbers, numbers)
    assert rows.labels.dtype == rows.ids.dtype == np.int64
    assert rows.labels.tolist() == rows.ids.tolist() == [3, 1, 2, 0]
    found, _ = ExactIndex().build(ROWS, numbers).search(ROWS[:1], 1)
    assert found == [[3]]


@pytest.mark.parametrize("form", ["list", "tuple", "array"])
@pytest.mark.parametrize("field", ["labels", "ids"])
def test_integers_and_strings_do_not_mix(form, field):
    """Both were the label "1"."""
    mixed = [1, "1", 2, "b"]
    if form != "list":
        mixed = tuple(mixed) if form == "tuple" else np.array(mixed, object)
    with pytest.raises(UsageError, match=f"`{field}` must be all integers or"):
        EmbeddingSet(ROWS, **{field: mixed})


@pytest.mark.parametrize("number", [2**63, 2**64])
def test_integers_that_are_too_large(number):
    with pytest.raises(UsageError, match="`ids` must"):
        EmbeddingSet(np.eye(2), ids=np.array([number, 1], object))
