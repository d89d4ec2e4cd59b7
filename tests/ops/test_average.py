"""What averages promise of the terms of a loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.ops import Average, balanced_class_weights
from tests.conformance import roundtrip

VALUES = np.array([[0.0, 0.4, 0.8], [0.6, 9.0, 9.0], [9.0, 9.0, 9.0]])
MASK = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], bool)
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 2], "int32")
X = np.random.default_rng(0).standard_normal((8, 4))


def of_row(i):
    """A matrix of the pairs of one row alone."""
    matrix = np.full((8, 8), -1)
    matrix[i] = LABELS[i] == LABELS
    return matrix


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        ({}, 1.8 / 4),
        ({"low": 0.0}, 1.8 / 3),
        ({"low": 0.4}, 1.4 / 2),
        ({"high": 0.6}, 0.4 / 2),
        ({"low": 1.0}, 0.0),
        # The last row has no terms.
        ({"per_anchor": True}, (0.4 + 0.6) / 2),
        ({"per_anchor": True, "low": 0.5}, 0.6),
        ({"class_weights": [2.0, 0.5]}, (2.0 * 1.2 + 0.5 * 0.6) / 4),
        (
            {"class_weights": [2.0, 0.5], "per_anchor": True},
            (2.0 * 0.4 + 0.5 * 0.6) / 2,
        ),
    ],
)
def test_averages_by_hand(arguments, wanted):
    labels = np.array([0, 1, 1], "int32")
    found = Average(**arguments)(VALUES, MASK, labels)
    np.testing.assert_allclose(found, [wanted] * 3)


@pytest.mark.parametrize("mining", ["hard", "easy", "all"])
def test_triplets_by_anchor_are_the_mean_of_the_means_of_rows(mining):
    loss = losses.Triplet(
        0.5, mining, average={"per_anchor": True}, dtype="float64"
    )
    alone = losses.Triplet(0.5, mining, average="all", dtype="float64")
    rows = [float(alone(of_row(i), X)) for i in range(8)]
    np.testing.assert_allclose(loss(LABELS, X), np.mean(rows))


def test_classes_without_weight_do_not_pull_their_rows():
    weights = {"class_weights": [1.0, 1.0, 0.0]}
    loss = losses.NTXent(average=weights, dtype="float64")
    plain = losses.NTXent(dtype="float64")
    number = LABELS[:, None] == LABELS
    positives = number.sum(axis=1) - 1
    rows = [
        positives[i] * float(plain(of_row(i), X))
        for i in np.flatnonzero(LABELS < 2)
    ]
    np.testing.assert_allclose(
        loss(LABELS, X), np.sum(rows) / positives.sum(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "weights",
    [np.array([1.0, 2.0, 0.5]), [np.float64(1), 2, 0.5], (1.0, 2.0, 0.5)],
)
def test_weights_of_classes_may_be_of_numpy(weights):
    average = Average(class_weights=weights)
    assert average == Average(class_weights=[1.0, 2.0, 0.5])
    assert type(average.class_weights) is list
    assert {type(one) for one in average.class_weights} == {float}


@pytest.mark.parametrize(
    "weights", [1.0, "12", [True], ["1"], [-1.0], [float("nan")], np.eye(2)]
)
def test_other_weights_of_classes_are_refused(weights):
    with pytest.raises(ValueError, match="`class_weights` must be"):
        Average(class_weights=weights)


def test_weights_of_classes_need_labels():
    loss = losses.NTXent(average={"class_weights": [1.0, 2.0, 1.0]})
    with pytest.raises(ValueError, match="`class_weights`.*matrix of pairs"):
        loss(LABELS[:, None] == LABELS, X)


@pytest.mark.parametrize("label", [-1, 3, 5])
def test_a_label_without_a_weight_is_named(label):
    loss = losses.NTXent(average={"class_weights": [1.0, 9.0, 1.0]})
    labels = tf.constant([*LABELS[:-1], label])
    wanted = "between 0 and 2, for `class_weights` holds 3 numbers"
    with pytest.raises(ValueError, match=f"{wanted}.*label {label} in row 7"):
        loss(labels, X)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        tf.function(loss)(labels, X)
    assert wanted in str(error.value)
    # No step that XLA compiles can raise.
    assert np.isnan(tf.function(loss, jit_compile=True)(labels, X))


def test_weights_of_classes_reach_the_pairs_of_a_memory():
    def last(average):
        loss = losses.Contrastive(average=average)
        layer = layers.CrossBatchMemory(loss, 16, warm_up_steps=0)
        for rows in (X, X[::-1]):
            y = layer([rows, np.zeros(8, "int32")], training=True)
        return float(y[0, -1])

    weighted = last({"low": 0.0, "class_weights": [3.0]})
    np.testing.assert_allclose(weighted, 3.0 * last(None), rtol=1e-6)


def test_a_loss_keeps_the_arguments_of_its_average():
    loss = losses.NTXent(average=Average(low=0.1, per_anchor=True))
    revived = roundtrip(loss)
    assert revived.average == loss.average
    assert revived.average["low"] == 0.1
    np.testing.assert_array_equal(revived(LABELS, X), loss(LABELS, X))


@pytest.mark.slow
def test_replicas_do_not_change_an_average(strategy):
    average = {"per_anchor": True, "class_weights": [0.5, 2.0, 1.0]}

    def trained():
        keras.utils.set_random_seed(0)
        x = keras.Input((4,))
        model = keras.Model(x, keras.layers.Dense(3)(x))
        model.compile("sgd", losses.Contrastive(average=average))
        data = tf.data.Dataset.from_tensors((X.astype("float32"), LABELS))
        model.fit(data, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    wanted = trained()
    with strategy.scope():
        found = trained()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_balanced_weights_make_classes_weigh_the_same():
    labels = np.array([0, 0, 0, 2, 2, 3])
    weights = np.array(balanced_class_weights(labels))
    np.testing.assert_allclose(
        weights * np.bincount(labels), [2.0, 0.0, 2.0, 2.0]
    )
