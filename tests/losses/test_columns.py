"""Losses with a column for each class: labels without one, and embeddings."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses
from tests.losses.cases import CASES, CLASSES, LABELS

WITH_COLUMNS = [
    name
    for name, case in CASES.items()
    if getattr(case.cls, "column_per_class", False)
]
RNG = np.random.default_rng(0)
EMBEDDINGS = RNG.standard_normal((8, 16)).astype("float32")
WARNED = "looks like embeddings.*Proxies"
EMBEDDINGS /= np.linalg.norm(EMBEDDINGS, axis=1, keepdims=True)


@pytest.mark.parametrize("name", WITH_COLUMNS)
@pytest.mark.parametrize("label", [-1, CLASSES, 97])
def test_a_label_without_a_column_is_named(name, label):
    y_pred = CASES[name].predictions(LABELS)
    labels = np.array([*LABELS[:-1], label], "int32")
    message = f"between 0 and 3, .* 4 columns. .*label {label} in row 7"
    with pytest.raises(ValueError, match=message):
        CASES[name].make()(labels, y_pred)


def compiled(loss, last=None, **arguments):
    """A model without proxies: its embeddings go to the loss."""
    images = keras.Input((16,))
    last = last or layers.EmbeddingHead(16, normalization="l2")
    model = keras.Model(images, last(keras.layers.Dense(16)(images)))
    model.compile("sgd", loss, **arguments)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_COLUMNS)
@pytest.mark.parametrize("label", [-1, CLASSES, 97])
def test_a_label_without_a_column_is_named_in_a_compiled_step(name, label):
    """It was `indices[7] = [7, 97] does not index into ...`."""
    y_pred = tf.constant(CASES[name].predictions(LABELS))
    labels = tf.constant([*LABELS[:-1], label], tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        tf.function(CASES[name].make())(labels, y_pred)
    said = str(error.value)
    assert "must lie between 0 and 3, for `y_pred` has 4 columns" in said
    assert f"Received: label] [{label}] [in row] [7] [The loss takes" in said


def test_fit_names_the_label_that_embeddings_have_no_column_for():
    model = compiled(losses.ProxyAnchor())
    labels = np.array([0, 1, 2, 3, 4, 5, 6, 97], "int32")
    with (
        pytest.warns(UserWarning, match=WARNED),
        pytest.raises(tf.errors.InvalidArgumentError) as error,
    ):
        model.fit(EMBEDDINGS, labels, shuffle=False, verbose=0)
    assert "`y_pred` has 16 columns. Received: label] [97]" in str(error.value)
    assert "put `keras_dml.layers.Proxies` in front" in str(error.value)


def test_embeddings_of_too_few_columns_do_not_train():
    """16 columns for 98 classes. XLA takes any index, as accelerators do."""
    model = compiled(losses.ProxyAnchor(), jit_compile=True)
    labels = np.array([0, 1, 2, 3, 4, 5, 6, 97], "int32")
    with pytest.warns(UserWarning, match=WARNED):
        history = model.fit(EMBEDDINGS, labels, verbose=0)
    assert np.isnan(history.history["loss"]).all()


def test_embeddings_in_place_of_similarities_warn():
    labels = np.arange(8, dtype="int32")
    with pytest.warns(UserWarning, match=WARNED):
        losses.ProxyAnchor()(labels, EMBEDDINGS)
    # Similarities do not, nor do orthogonal ones, which have length 1 too.
    losses.ProxyAnchor()(labels, layers.Proxies(8)(EMBEDDINGS))
    losses.ProxyAnchor()(labels, ops.eye(8))
    # Logits may have any length.
    losses.NormalizedSoftmax()(labels, EMBEDDINGS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "last",
    [
        layers.EmbeddingHead(128, normalization="l2"),
        keras.layers.UnitNormalization(),
        keras.layers.Lambda(lambda rows: tf.math.l2_normalize(rows, axis=1)),
        keras.layers.Lambda(
            lambda rows: rows / tf.norm(rows, axis=1, keepdims=True)
        ),
    ],
    ids=["EmbeddingHead", "UnitNormalization", "l2_normalize", "norm"],
)
@pytest.mark.parametrize("compiles", [False, True], ids=["graph", "xla"])
def test_a_training_on_embeddings_warns(last, compiles):
    """128 columns hold any of 98 classes: no label would tell."""
    model = compiled(losses.ProxyAnchor(), last, jit_compile=compiles)
    labels = np.arange(8, dtype="int32")
    with pytest.warns(UserWarning, match=WARNED):
        model.fit(EMBEDDINGS, labels, verbose=0)


def test_a_training_on_similarities_or_other_rows_does_not_warn():
    """Warnings are errors in a test."""
    labels = np.arange(8, dtype="int32")
    for last in (
        layers.Proxies(8),
        keras.layers.Dense(16),
        # Of all rows, so that none has length 1.
        keras.layers.Lambda(lambda rows: tf.math.l2_normalize(rows)),
    ):
        model = compiled(losses.ProxyAnchor(), last)
        model.fit(EMBEDDINGS, labels, verbose=0)
