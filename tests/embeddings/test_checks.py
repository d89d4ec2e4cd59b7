import numpy as np
import pytest
import tensorflow as tf

from keras_dml.embeddings import EmbeddingSet
from keras_dml.embeddings.checks import as_labels
from keras_dml.errors import UsageError
from keras_dml.evaluation import retrieval_metrics

WORDS = ["b", "a", "\u00e9", "a"]


def test_texts_of_tensorflow_are_strings():
    """`tf.data` yields them as objects, each of them bytes."""
    texts = tf.constant(WORDS)
    assert texts.numpy().dtype == object
    for one in (texts, texts.numpy(), list(texts.numpy())):
        assert as_labels(one, 4, "labels").tolist() == WORDS
    rows = np.eye(4)
    assert retrieval_metrics(rows, texts) == retrieval_metrics(rows, WORDS)
    assert EmbeddingSet(rows, texts).labels.tolist() == WORDS


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([b"a", b"\xff"], "`labels` must hold text in UTF-8"),
        ([b"a", "a"], "all integers or all strings"),
        ([b"a", 1], "must hold integers or strings"),
    ],
)
def test_other_objects_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        as_labels(np.array(values, object), 2, "labels")


@pytest.mark.parametrize("kind", [list, np.asarray, tf.constant])
@pytest.mark.parametrize("longest", ["x" * 4097, b"x" * 4097])
def test_a_text_longer_than_any_path_is_refused(kind, longest):
    as_labels(kind([longest[:4096], longest[:1]]), 2, "ids")
    with pytest.raises(UsageError, match="at most 4,096 .* one of 4,097"):
        as_labels(kind([longest, longest[:1]]), 2, "ids")


@pytest.mark.parametrize("one", [3, "a", None, np.array("a", object)])
def test_a_single_value_is_no_row(one):
    with pytest.raises(UsageError, match="`ids`"):
        as_labels(one, 3, "ids")
