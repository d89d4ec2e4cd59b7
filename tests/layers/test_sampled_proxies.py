import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses
from keras_dml.models.head import label_input
from keras_dml.optimizers import PerVariable, RowLazyAdam
from tests.conformance import roundtrip, to_numpy

RNG = np.random.default_rng(0)
CLASSES, DIM = 12, 4
LABELS = np.array([5, 2, 5, 9, 2, 11, 0, 9], "int32")
X = RNG.standard_normal((8, DIM)).astype("float32")

# The loss, the arguments of the proxies, the scale of the logits.
CASES = {
    "softmax": (losses.Softmax(), {"metric": "dot", "unit_proxies": False}, 1),
    "norm_softmax": (losses.NormalizedSoftmax(), {}, 10),
    "proxynca": (losses.ProxyNCA(), {"metric": "neg_squared_euclidean"}, 5),
    "proxynca_pp": (
        losses.ProxyNCAPlusPlus(),
        {"metric": "neg_squared_euclidean"},
        5,
    ),
    "proxy_anchor": (losses.ProxyAnchor(), {}, None),
    "arcface": (losses.ArcFace(), {}, None),
    "cosface": (losses.CosFace(), {}, None),
    "soft_triple": (losses.SoftTriple(), {"centers": 3}, None),
    "sub_center_arcface": (losses.SubCenterArcFace(), {"centers": 2}, None),
    "our_loss_2": (losses.OurLoss2(), {}, None),
    "weighted_sum": (
        losses.WeightedSum([losses.Softmax(), losses.ProxyNCA()]),
        {},
        3,
    ),
    "of_keras": (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        {},
        3,
    ),
}


def both(case, sample_size=CLASSES):
    """The dense layer and its sampled twin with the same proxies."""
    _, arguments, _ = CASES[case]
    dense = layers.Proxies(CLASSES, **arguments)
    sampled = layers.SampledProxies(CLASSES, sample_size, **arguments)
    dense.build((None, DIM))
    sampled.build([(None, DIM), (None,)])
    sampled.proxies.assign(dense.proxies)
    return dense, sampled


def value_and_gradients(case, layer, inputs, loss):
    scale = CASES[case][2]
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = layer(x if inputs is None else [x, inputs], training=True)
        if scale is not None:
            output = scale * output
        value = loss(LABELS, output)
    return value, *tape.gradient(value, [x, layer.proxies.value])


@pytest.mark.parametrize("case", CASES)
def test_a_sample_of_everything_is_exact(case):
    loss = CASES[case][0]
    dense, sampled = both(case)
    wanted = value_and_gradients(case, dense, None, loss)
    found = value_and_gradients(
        case, sampled, LABELS, losses.OnSampledClasses(loss)
    )
    assert isinstance(found[2], tf.IndexedSlices)
    for a, w in zip(found, wanted, strict=True):
        a, w = to_numpy(tf.convert_to_tensor(a)), to_numpy(w)
        np.testing.assert_allclose(a, w, atol=1e-5 * max(1, abs(w).max()))


@pytest.mark.parametrize("case", CASES)
def test_a_sample_is_the_loss_on_its_classes(case):
    """The dense layer with no other proxies than those of the sample."""
    loss = CASES[case][0]
    dense, sampled = both(case, sample_size=7)
    found = value_and_gradients(
        case, sampled, LABELS, losses.OnSampledClasses(loss)
    )
    classes = found[2].indices.numpy()
    own = np.unique(LABELS)
    np.testing.assert_array_equal(classes[: len(own)], own)
    part = layers.Proxies(7, **CASES[case][1])
    part.build((None, DIM))
    part.proxies.assign(to_numpy(dense.proxies)[classes])
    scale = CASES[case][2] or 1
    output = scale * part(X)
    value = loss(np.searchsorted(own, LABELS), output)
    np.testing.assert_allclose(found[0], value, rtol=1e-5)


def drawn(layer, training=True):
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(layer([X, LABELS], training=training))
    return tape.gradient(value, layer.proxies.value).indices.numpy().tolist()


def test_every_step_draws_anew_and_the_seed_repeats_it():
    draws = []
    for seed in (1, 1, 2):
        layer = layers.SampledProxies(1000, 100, seed=seed)
        draws.append([drawn(layer) for _ in range(3)])
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0][0] != draws[0][1] != draws[0][2]


def test_outside_of_training_the_sample_is_always_the_same():
    layer = layers.SampledProxies(1000, 100, seed=1)
    first = drawn(layer, training=False)
    state = layer.seed_generator.state.numpy()
    drawn(layer)
    assert drawn(layer, training=False) == first
    assert (layer.seed_generator.state.numpy() != state).any()


def test_a_batch_of_more_classes_than_the_sample_is_not_hidden():
    assert len(np.unique(LABELS)) == 5
    for size, fits in ((5, True), (4, False)):
        layer = layers.SampledProxies(CLASSES, size)
        output = to_numpy(layer([X, LABELS], training=True))
        assert np.isfinite(output).all() == fits
        assert np.isnan(output).all() != fits


def test_roundtrip_and_shapes():
    layer = layers.SampledProxies(
        50, 10, metric="dot", unit_proxies=False, initializer="normal", seed=3
    )
    roundtrip(layer)
    roundtrip(losses.OnSampledClasses(losses.ArcFace(margin=0.2)))
    shapes = [(None, DIM), (None,)]
    assert layer.compute_output_shape(shapes) == (None, 10)
    layer = layers.SampledProxies(50, 10, centers=3)
    assert layer.compute_output_shape(shapes) == (None, 10, 3)
    assert layer([X, LABELS[:, None]]).shape == (8, 10, 3)
    names = {weight.name for weight in layer.weights}
    assert names == {"proxies", "seed_generator_state"}


def test_class_means_reach_the_table():
    layer = layers.SampledProxies(CLASSES, 6)
    layer.assign_class_means(X, LABELS)
    # Before, the first call added the proxies a second time.
    assert layer([X, LABELS]).shape == (len(X), 6)
    one = X[6] / np.linalg.norm(X[6])
    np.testing.assert_allclose(layer.proxies[0], one, rtol=1e-5)


def build(sample_size, sampled=True, loss=None, dense_adam=False):
    keras.utils.set_random_seed(0)
    loss = loss or losses.NormalizedSoftmax()
    x = keras.Input((6,), name="image")
    label = label_input()
    h = keras.layers.Dense(DIM, name="head")(x)
    if sampled:
        h = layers.SampledProxies(20, sample_size, seed=1, name="proxies")(
            [h, label]
        )
        loss = losses.OnSampledClasses(loss)
    else:
        h = layers.Proxies(20, name="proxies")(h)
    model = keras.Model({"image": x, "label": label}, h)
    table = keras.optimizers.Adam if dense_adam else RowLazyAdam
    model.compile(
        PerVariable(
            keras.optimizers.Adam(0.01, name="network"),
            {"proxies/.*": table(0.05, name="proxies")},
        ),
        loss,
    )
    return model


def batches():
    generator = np.random.default_rng(1)
    data = generator.standard_normal((64, 6)).astype("float32")
    labels = generator.integers(0, 20, 64).astype("int32")
    return tf.data.Dataset.from_tensor_slices(
        ({"image": data, "label": labels}, labels)
    ).batch(8, drop_remainder=True)


def weights_of(model):
    return model.trainable_variables


@pytest.mark.slow
def test_training_with_everything_sampled_is_that_of_the_dense_layer():
    sampled, dense = build(20), build(20, sampled=False, dense_adam=True)
    dense.set_weights([w.numpy() for w in weights_of(sampled)])
    histories = [
        one.fit(batches(), epochs=3, verbose=0, shuffle=False).history["loss"]
        for one in (sampled, dense)
    ]
    np.testing.assert_allclose(*histories, rtol=1e-5)
    for a, w in zip(weights_of(sampled), weights_of(dense), strict=True):
        np.testing.assert_allclose(a, w, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [losses.NormalizedSoftmax(), losses.ProxyAnchor()]
)
def test_replicas_do_not_change_training(loss, strategy):
    wanted = build(12, loss=loss)
    expected = wanted.fit(batches(), epochs=2, verbose=0, shuffle=False)
    with strategy.scope():
        model = build(12, loss=loss)
        history = model.fit(batches(), epochs=2, verbose=0, shuffle=False)
    np.testing.assert_allclose(
        history.history["loss"], expected.history["loss"], rtol=1e-5
    )
    for a, w in zip(model.variables, wanted.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), w.numpy(), atol=1e-5)


def test_a_reloaded_model_goes_on_bit_for_bit(tmp_path):
    model = build(12)
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    for trained in (model, revived):
        trained.fit(batches(), epochs=2, verbose=0, shuffle=False)
    for a, w in zip(revived.variables, model.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), w.numpy())


def test_xla_is_off_where_it_would_copy_the_table():
    assert not layers.SampledProxies(9, 3).supports_jit


@pytest.mark.parametrize("size", [0, 13, 2.5, True])
def test_refused_sizes(size):
    with pytest.raises(ValueError, match=f"`sample_size`.*={size}"):
        layers.SampledProxies(12, size)


@pytest.mark.parametrize(
    "dtype", ["float64", "mixed_float16", "mixed_bfloat16"]
)
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_another_dtype_is_that_of_the_dense_layer(dtype, metric):
    unit = metric == "cosine"
    arguments = {"metric": metric, "unit_proxies": unit, "dtype": dtype}
    dense = layers.Proxies(CLASSES, **arguments)
    sampled = layers.SampledProxies(CLASSES, CLASSES, **arguments)
    dense.build((None, DIM))
    sampled.build([(None, DIM), (None,)])
    dense.proxies.assign(sampled.proxies)
    found = []
    for layer, inputs in ((dense, X), (sampled, [X, LABELS])):
        with tf.GradientTape() as tape:
            output = layer(inputs, training=True)
            # The sample may have the classes in another order.
            value = ops.sum(ops.cast(output, "float32") ** 2)
        gradient = tape.gradient(value, layer.proxies.value)
        assert output.dtype == layer.compute_dtype
        assert layer.proxies.dtype == layer.variable_dtype
        found.append((np.sort(output), tf.convert_to_tensor(gradient)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), rtol=1e-2)
