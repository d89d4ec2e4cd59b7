"""Chunks change the memory of a step, not its result."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses
from tests.conformance import roundtrip

pytestmark = pytest.mark.slow

ROWS, SIDE, CHUNK = 22, 8, 5
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(ROWS, SIDE, SIDE, 3))
IMAGES = IMAGES.astype("float32")
LABELS = np.arange(ROWS) // 2


def network(*between):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            *between,
            keras.layers.Flatten(),
            keras.layers.Dense(5),
        ]
    )


def trained(loss, rows, chunk_size=None, **compiled):
    """Returns the loss of three steps, and the weights after them."""
    layer = network()
    image = keras.Input((SIDE, SIDE, 3))
    chunked = chunk_size and layers.InChunks(layer, chunk_size)
    model = keras.Model(image, (chunked or layer)(image))
    model.compile(keras.optimizers.SGD(0.05), loss, **compiled)
    steps = []
    for _ in range(3):
        # Keras before 3.15 gives the mean of all steps.
        model.reset_metrics()
        steps += [float(model.train_on_batch(IMAGES[:rows], LABELS[:rows]))]
    return steps, model.get_weights()


def gradients(embed, weights):
    with tf.GradientTape() as tape:
        loss = losses.MultiSimilarity()(LABELS, embed())
    found = tape.gradient(loss, [one.value for one in weights])
    return [one.numpy() for one in found]


def test_a_saved_model_holds_the_layer(tmp_path):
    image = keras.Input((SIDE, SIDE, 3))
    chunked = layers.InChunks(network(), CHUNK, name="backbone")
    model = keras.Model(image, chunked(image))
    assert model.output_shape == (None, 5)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert revived.get_layer("backbone").chunk_size == CHUNK
    np.testing.assert_array_equal(revived(IMAGES), model(IMAGES))


def test_a_config_makes_several_layers():
    roundtrip(layers.InChunks(keras.layers.Dense(3), CHUNK))


@pytest.mark.parametrize("rows", [20, 22, 4], ids=["whole", "rest", "few"])
@pytest.mark.parametrize(
    "loss", [losses.MultiSimilarity, losses.Triplet, losses.SupCon]
)
def test_training_is_that_of_the_whole_batch(loss, rows):
    expected, weights = trained(loss(), rows)
    steps, found = trained(loss(), rows, CHUNK)
    np.testing.assert_allclose(steps, expected, rtol=1e-5)
    for one, other in zip(found, weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("how", [{"jit_compile": True}, {"run_eagerly": True}])
def test_xla_and_eager_steps_are_the_same(how):
    expected, _ = trained(losses.Contrastive(), ROWS)
    steps, _ = trained(losses.Contrastive(), ROWS, CHUNK, **how)
    np.testing.assert_allclose(steps, expected, rtol=1e-4)


def test_a_graph_need_not_know_the_number_of_rows():
    layer = network()
    chunked = layers.InChunks(layer, CHUNK)
    unknown = tf.TensorSpec((None, SIDE, SIDE, 3))

    @tf.function(input_signature=[unknown])
    def embed(images):
        return chunked(images, training=True)

    for rows in (20, 22, 4):
        expected = layer(IMAGES[:rows])
        np.testing.assert_allclose(embed(IMAGES[:rows]), expected, rtol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_the_last_batch_of_an_epoch_may_be_of_any_size(jit):
    """Batches of 16 and 6 rows, of which the graph knows neither number."""
    found = []
    for chunk_size in (None, CHUNK):
        layer = network()
        image = keras.Input((SIDE, SIDE, 3))
        chunked = chunk_size and layers.InChunks(layer, chunk_size)
        model = keras.Model(image, (chunked or layer)(image))
        model.compile(
            keras.optimizers.SGD(0.05), losses.SupCon(), jit_compile=jit
        )
        model.fit(IMAGES, LABELS, batch_size=16, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


class Calls(keras.layers.Layer):
    """Counts its calls."""

    def build(self, input_shape):
        self.number = self.add_weight(
            shape=(2,), dtype="int32", initializer="zeros", trainable=False
        )

    def call(self, inputs, training=False):
        if training:
            self.number.assign_add([1, 1])
        return inputs


@pytest.mark.parametrize("jit", [False, True])
def test_integer_states_are_not_taken_for_seeds(jit):
    """Such as the count of the normalization in EfficientNet."""
    scaling = keras.layers.Normalization()
    scaling.adapt(RNG.normal(size=(4, SIDE - 2, SIDE - 2, 4)))
    layer = network(scaling, Calls(), keras.layers.Dropout(0.5, seed=1))
    calls = layer.layers[2]
    image = keras.Input((SIDE, SIDE, 3))
    model = keras.Model(image, layers.InChunks(layer, CHUNK)(image))
    model.compile("sgd", losses.SupCon(), jit_compile=jit)
    history = model.fit(IMAGES, LABELS, batch_size=ROWS, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    # Four whole chunks and a rest.
    np.testing.assert_array_equal(calls.number, [5, 5])


def test_statistics_are_of_the_chunks_and_seeds_differ_between_them():
    """Against chunks of which nothing is computed twice."""
    layer = network(
        keras.layers.BatchNormalization(), keras.layers.Dropout(0.5, seed=1)
    )
    chunked = layers.InChunks(layer, CHUNK)
    mean = layer.layers[1].moving_mean
    seed = layer.layers[2].seed_generator.state
    start = [ops.copy(one.value) for one in (mean, seed)]
    weights = layer.trainable_variables
    found = gradients(lambda: chunked(IMAGES, training=True), weights)
    after = [ops.convert_to_numpy(one.value) for one in (mean, seed)]

    means = []

    def embed():
        seed.assign(start[1])
        parts = []
        for first in range(0, ROWS, CHUNK):
            mean.assign(start[0])
            rows = IMAGES[first : first + CHUNK]
            parts.append(layer(rows, training=True))
            means.append(ops.convert_to_numpy(mean.value))
        return ops.concatenate(parts)

    expected = gradients(embed, weights)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(after[0], np.mean(means, axis=0), rtol=1e-5)
    np.testing.assert_array_equal(after[1], ops.convert_to_numpy(seed.value))


def test_outside_of_training_all_rows_go_at_once():
    layer = network(keras.layers.Dropout(0.5))
    np.testing.assert_array_equal(
        layers.InChunks(layer, CHUNK)(IMAGES), layer(IMAGES)
    )


def test_replicas_train_as_one_device(strategy):
    images, labels = IMAGES[:20], LABELS[:20]
    with strategy.scope():
        layer = network()
        image = keras.Input((SIDE, SIDE, 3))
        model = keras.Model(image, layers.InChunks(layer, CHUNK)(image))
        model.compile(keras.optimizers.SGD(0.05), losses.MultiSimilarity())
        history = model.fit(
            tf.data.Dataset.from_tensors((images, labels)).repeat(3),
            steps_per_epoch=1,
            epochs=3,
            shuffle=False,
            verbose=0,
        )
    expected, weights = trained(losses.MultiSimilarity(), 20)
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-4)
    for one, other in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_no_chunks_of_nothing():
    with pytest.raises(ValueError, match="chunk_size=0"):
        layers.InChunks(network(), 0)


ROW = np.arange(7) % 5


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: keras.layers.Conv2D(2, 2), IMAGES[:7]),
        (lambda: keras.layers.Embedding(5, 2), ROW),
        (lambda: keras.layers.Rescaling(2.0), IMAGES[:7]),
    ],
    ids=["convolution", "embedding", "rescaling"],
)
def test_a_layer_that_does_not_ask_for_training(make, inputs):
    layer = make()
    expected = ops.convert_to_numpy(layer(inputs))
    chunked = layers.InChunks(layer, 3)
    weights = [one.value for one in layer.trainable_variables]
    found = []
    for embed in (layer, lambda x: chunked(x, training=True)):
        with tf.GradientTape() as tape:
            outputs = embed(tf.constant(inputs))
            value = ops.sum(outputs**2)
        np.testing.assert_allclose(outputs, expected, atol=1e-6)
        gradient = map(tf.convert_to_tensor, tape.gradient(value, weights))
        found.append(list(gradient))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


class Subclassed(keras.Model):
    """Makes its weights in its first call."""

    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(2)

    def call(self, inputs):
        return self.inner(inputs)


def test_a_subclassed_model_may_see_its_first_rows_in_training():
    model = Subclassed()
    chunked = layers.InChunks(model, 3)
    outputs = chunked(IMAGES[:, 0, 0], training=True)
    assert len(model.trainable_variables) == 2
    np.testing.assert_allclose(outputs, model(IMAGES[:, 0, 0]), rtol=1e-5)


@pytest.mark.parametrize("half", ["mixed_float16", "mixed_bfloat16"])
def test_the_layer_computes_in_its_own_policy_in_both_modes(half):
    rows = keras.Input((3,))
    layer = keras.layers.Dense(2, dtype=half)
    chunked = layers.InChunks(layer, 3)
    assert chunked(rows).dtype == layer.compute_dtype
    found = [
        chunked(IMAGES[:, 0, 0], training=training)
        for training in (False, True)
    ]
    for outputs in found:
        assert outputs.dtype == layer.compute_dtype
    np.testing.assert_array_equal(*(ops.cast(x, "float32") for x in found))


def test_a_float32_layer_stays_so_under_a_global_policy(policy):
    layer = keras.layers.BatchNormalization(dtype="float32", momentum=1.0)
    chunked = layers.InChunks(layer, 1)
    exact = np.array([[1234.567], [70_000.0]], "float32")
    chunked.build(exact.shape)
    layer.moving_mean.assign([1234.567])
    for training in (False, True):
        outputs = chunked(exact, training=training)
        assert outputs.dtype == "float32"
        # float16 would round the mean, and add the difference to it.
        np.testing.assert_array_equal(layer.moving_mean, exact[0])
    np.testing.assert_allclose(
        chunked(exact)[:, 0], exact[:, 0] - exact[0], rtol=1e-3
    )
