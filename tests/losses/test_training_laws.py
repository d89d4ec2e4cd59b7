"""What every loss promises of a training: replicas, files, progress."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers
from keras_dml.models.head import label_input
from tests.losses.cases import CASES, CLASSES
from tests.losses.steps import connected

# Two cases of one loss and one head differ in arguments, which train alike.
ONCE = pytest.mark.parametrize(
    "name",
    {
        (case.cls, case.options, case.head): name
        for name, case in reversed(CASES.items())
        if case.head or case.cls.takes
    }.values(),
)


def small_model(name):
    """An embedder of two layers, the head of the loss, and the loss."""
    keras.utils.set_random_seed(0)
    case = CASES[name]
    x = keras.Input((6,), name="image")
    label = label_input()
    embedding = layers.EmbeddingHead(5, name="head")(x)
    y_pred = connected(case, embedding, label, CLASSES)
    model = keras.Model({"image": x, "label": label}, y_pred)
    model.compile(keras.optimizers.SGD(0.05), case.make())
    return model


def batches():
    """Five; on two replicas each has one row of every class."""
    rows = np.random.default_rng(1).standard_normal((40, 6)).astype("float32")
    labels = np.tile(np.arange(CLASSES, dtype="int32"), 10)
    data = tf.data.Dataset.from_tensor_slices(
        ({"image": rows, "label": labels}, labels)
    )
    return data.batch(8)


def train(name):
    model = small_model(name)
    history = model.fit(batches(), verbose=0, shuffle=False)
    return history.history["loss"], model.get_weights()


@pytest.mark.slow
@ONCE
def test_replicas_do_not_change_training(name, strategy):
    """Five steps."""
    expected_loss, expected = train(name)
    with strategy.scope():
        loss, weights = train(name)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
    for actual, wanted in zip(weights, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-5)
    start = small_model(name).get_weights()
    assert abs(start[0] - expected[0]).max() > 1e-6


@pytest.mark.slow
@ONCE
def test_model_with_the_loss_is_saved_and_loaded(name, tmp_path):
    model = small_model(name)
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(batches(), verbose=0),
        model.evaluate(batches(), verbose=0),
        rtol=1e-6,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "cosines" in name])
def test_training_lowers_the_loss(name):
    model = small_model(name)
    model.optimizer.learning_rate.assign(0.01)
    x, labels = next(iter(batches()))
    history = model.fit(x, labels, epochs=20, batch_size=8, verbose=0)
    values = history.history["loss"]
    assert values[-1] < 0.9 * values[0]


@pytest.mark.slow
@ONCE
def test_a_replica_without_rows_trains(name, strategy):
    """The last batch of nine has one row, and two replicas."""
    with strategy.scope():
        model = small_model(name)
    few = batches().unbatch().take(9).batch(8)
    few = few.apply(tf.data.experimental.assert_cardinality(2))
    history = model.fit(few, verbose=0, shuffle=False)
    assert np.isfinite(history.history["loss"]).all()
    assert all(np.isfinite(one).all() for one in model.get_weights())


@pytest.mark.slow
@ONCE
def test_replicas_with_unlike_numbers_of_rows_lose_as_one_device(
    name, strategy
):
    """Seven rows are four on one replica and three on the other."""
    data = batches().unbatch().take(7).batch(7)
    (batch,) = data
    expected = values_of(small_model(name), *batch)
    with strategy.scope():
        model = small_model(name)
    (parts,) = strategy.experimental_distribute_dataset(data)
    found = strategy.run(tf.function(values_of), args=(model, *parts))
    rows = np.concatenate(strategy.experimental_local_results(found))
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-5)


def values_of(model, inputs, labels):
    """The loss of each row."""
    return model.loss.call(labels, model(inputs, training=False))
