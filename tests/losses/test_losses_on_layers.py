"""Laws of the losses that take what a layer of their own appends or makes.

Of the other losses they stand in `test_pair_losses`, `test_proxy_losses` and
`test_logits_losses`.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import roundtrip

CLASSES = 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 5)).astype("float32")
# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")


def boundaries(classes):
    return layers.ClassBoundaries(classes), losses.Margin(nu=0.1)


def memory(classes):
    layer = layers.CrossBatchMemory(
        losses.MultiSimilarity(), size=24, warm_up_steps=0
    )
    return layer, losses.WithMemory(losses.Contrastive())


def sample_aware(loss):
    def make(classes):
        layer = layers.SampleAwareProxies(
            classes, memory_size=24, memory_epoch=0, filter_epoch=0
        )
        return layer, loss

    return make


def no_layer(classes):
    terms = [losses.Triplet(margin=0.5), losses.Contrastive()]
    return (lambda inputs, training: inputs[0]), losses.WeightedSum(
        terms, [2.0, 0.5]
    )


# Functions of the number of classes that make a layer and a loss.
CASES = {
    "margin": boundaries,
    "with_memory": memory,
    "proxy_isa": sample_aware(losses.ProxyISA()),
    "proxynca_isa": sample_aware(losses.ProxyNCAISA()),
    "weighted_sum": no_layer,
}
EACH = pytest.mark.parametrize("case", CASES)
# Training of the others has its tests beside their layers.
TRAINED = pytest.mark.parametrize(
    "case", ["margin", "proxynca_isa", "weighted_sum"]
)


def prepared(case, classes=CLASSES):
    """A layer that has seen a batch, and the loss."""
    keras.utils.set_random_seed(0)
    layer, loss = CASES[case](classes)
    layer([tf.constant(X[::-1].copy()), LABELS[::-1].copy()], training=True)
    return layer, loss


def value_and_gradient(layer, loss, labels, x, training=True):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(labels, layer([x, labels], training=training))
    return value, tape.gradient(value, x)


def test_every_loss_has_its_laws():
    in_other_files = {
        name
        for name in losses.LOSSES
        if losses.input_of(name) in ("logits", "similarities", "embeddings")
    }
    assert in_other_files | CASES.keys() == {
        *losses.LOSSES,
        "with_memory",
        "weighted_sum",
    }


@EACH
def test_eager_graph_and_xla_agree(case):
    results = []
    for compile_ in (
        lambda step: step,
        tf.function,
        lambda step: tf.function(step, jit_compile=True),
    ):
        layer, loss = prepared(case)

        @compile_
        def step(x, layer=layer, loss=loss):
            return value_and_gradient(layer, loss, LABELS, x)

        results.append(step(tf.constant(X)))
    assert np.any(results[0][1])
    for other in results[1:]:
        for actual, wanted in zip(other, results[0], strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


@EACH
def test_computes_in_float32_under_any_policy(case, policy):
    """Embeddings of half precision; the layer and the loss are not."""
    layer, loss = prepared(case)
    half = tf.cast(X, "float16")
    value, gradient = value_and_gradient(layer, loss, LABELS, half)
    assert value.dtype == "float32"
    keras.config.set_dtype_policy("float32")
    layer, loss = prepared(case)
    wanted, wanted_gradient = value_and_gradient(
        layer, loss, LABELS, tf.cast(half, "float32")
    )
    np.testing.assert_allclose(value, wanted, rtol=1e-5)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=2e-3, atol=2e-3)


DEGENERATE = {
    "no positives": (np.arange(4), X[:4]),
    "one class only": (np.zeros(8), X),
    "one row only": (LABELS[:1], X[:1]),
    "duplicates": (LABELS, np.repeat(X[:1], 8, axis=0)),
    "zero vectors": (LABELS, 0 * X),
    "one zero vector": (LABELS, X * (np.arange(8) != 2)[:, None]),
    "long vectors": (LABELS, 1e4 * X),
}


@EACH
@pytest.mark.parametrize("batch", DEGENERATE)
def test_degenerate_batches_give_finite_values_and_gradients(case, batch):
    labels, x = DEGENERATE[batch]
    layer, loss = prepared(case)
    for _ in range(2):
        value, gradient = value_and_gradient(
            layer, loss, labels.astype("int32"), x
        )
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    for weight in getattr(layer, "weights", []):
        assert np.isfinite(weight.numpy()).all()


@EACH
def test_100_000_labels(case):
    layer, loss = prepared(case, 100_000)
    labels = LABELS * 33_333
    value, gradient = value_and_gradient(layer, loss, labels, X)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert np.any(gradient)


@EACH
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision_is_refused(case, dtype):
    config = CASES[case](CLASSES)[1].get_config()
    cls = type(CASES[case](CLASSES)[1])
    with pytest.raises(ValueError, match="half precision.*float16"):
        cls.from_config({**config, "dtype": dtype})


@EACH
@pytest.mark.parametrize(
    "labels, message",
    [
        (LABELS.astype("float32"), "dtype float32"),
        (np.eye(4, dtype="float32")[LABELS], "dtype float32"),
        (np.eye(4, dtype="int32")[LABELS], r"one-hot.*\(8, 4\).*argmax"),
        (LABELS[:5], r"same number of rows.*\(5,\)"),
    ],
)
def test_labels_that_the_loss_refuses(case, labels, message):
    layer, loss = prepared(case)
    y_pred = layer([tf.constant(X), LABELS], training=False)
    with pytest.raises(ValueError, match=message):
        loss(labels, y_pred)


@EACH
def test_predictions_of_another_rank_are_refused(case):
    _, loss = CASES[case](CLASSES)
    for y_pred in (X[:, 0], np.ones((8, 5, 2, 2), "float32")):
        with pytest.raises(ValueError, match=r"y_pred.*[Rr]eceived.*\(8,"):
            loss(LABELS, y_pred)


@EACH
def test_roundtrip(case):
    layer, loss = CASES[case](CLASSES)
    roundtrip(loss)
    if isinstance(layer, keras.layers.Layer):
        roundtrip(layer)


def build(case):
    keras.utils.set_random_seed(0)
    x = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    layer, loss = CASES[case](CLASSES)
    h = layers.EmbeddingHead(5, name="head")(x)
    if case == "weighted_sum":
        h = keras.layers.Identity()([h, label])[0]
    else:
        h = layer([h, label])
    model = keras.Model({"image": x, "label": label}, h)
    model.compile(keras.optimizers.SGD(0.05), loss)
    return model


def batches():
    """Five; on two replicas each has one row of every class."""
    rows = np.random.default_rng(1).standard_normal((40, 6)).astype("float32")
    labels = np.tile(np.arange(4, dtype="int32"), 10)
    data = tf.data.Dataset.from_tensor_slices(
        ({"image": rows, "label": labels}, labels)
    )
    return data.batch(8)


@TRAINED
def test_two_replicas_are_as_one_after_five_steps(case, strategy):
    wanted = build(case)
    expected = wanted.fit(batches(), verbose=0, shuffle=False).history
    with strategy.scope():
        model = build(case)
        history = model.fit(batches(), verbose=0, shuffle=False).history
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-4)
    start = build(case).get_weights()
    for a, w in zip(model.get_weights(), wanted.get_weights(), strict=True):
        np.testing.assert_allclose(a, w, rtol=1e-3, atol=1e-5)
    assert abs(start[0] - wanted.get_weights()[0]).max() > 1e-4


@TRAINED
def test_model_with_the_loss_is_saved_and_loaded(case, tmp_path):
    model = build(case)
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(batches(), verbose=0),
        model.evaluate(batches(), verbose=0),
        rtol=1e-6,
    )
