import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import callbacks, layers, losses
from tests.conformance import roundtrip

CLASSES, DIM = 4, 5
ARGUMENTS = {
    "num_classes": CLASSES,
    "memory_size": 7,
    "volume": 5.0,
    "hardness": 0.6,
    "memory_epoch": 1,
    "filter_epoch": 2,
    "sensitivity": 0.2,
    "margin": 0.05,
    "tau": 3.0,
}
STATE = (
    "seen",
    "learned",
    "memory",
    "memory_labels",
    "position",
    "class_sums",
    "class_counts",
)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class Naive:
    """Algorithm 1 of the paper, one pair at a time, with a list as queue."""

    def __init__(self, proxies):
        self.p = unit(proxies)
        self.queue = []
        self.learned = np.ones(CLASSES)
        self.seen = np.zeros(CLASSES)

    def step(self, x, labels, epoch):
        x = unit(x)
        a, weights = ARGUMENTS, np.ones((len(x), CLASSES))
        filtering, clean = epoch >= a["filter_epoch"], []
        for i, c in np.ndindex(weights.shape):
            base = (a["volume"] - 1) / a["volume"]
            effective = (1 - base ** self.seen[c]) / (1 - base)
            v = 1 / (1 + np.log(1 + effective))
            sigma = 1 + (1 + np.exp(-a["tau"])) * (v - 1) / (
                1 + np.exp(a["volume"] - effective - a["tau"])
            )
            length = 1 + a["sensitivity"] * (1 - self.learned[c])
            outlier = self.learned[c] - (length * v + a["margin"])
            s = x[i] @ self.p[c]
            if labels[i] != c:
                weights[i, c] = 1 / max(1, effective) if s < outlier else 1
            elif filtering:
                inside = outlier <= s <= self.learned[c]
                weights[i, c] = sigma + inside
                clean.append(s >= outlier)
            else:
                clean.append(True)
        for i, label in enumerate(labels):
            self.seen[label] += clean[i]
            if clean[i] and epoch >= a["memory_epoch"]:
                self.queue.append((x[i], label))
        self.queue = self.queue[-a["memory_size"] :]
        for c in set(labels.tolist()):
            own = [row @ self.p[c] for row, label in self.queue if label == c]
            if epoch >= a["memory_epoch"] and own:
                self.learned[c] = a["hardness"] * np.mean(own)
        return weights, clean


def built(**changes):
    layer = layers.SampleAwareProxies(**{**ARGUMENTS, **changes})
    layer.build([(None, DIM), (None,)])
    rng = np.random.default_rng(0)
    layer.similarity.set_weights([rng.standard_normal((CLASSES, DIM))])
    return layer


def steps(count, rows=5):
    rng = np.random.default_rng(1)
    for _ in range(count):
        x = rng.standard_normal((rows, DIM)).astype("float32")
        yield x, rng.integers(0, CLASSES, rows).astype("int32")


@pytest.mark.parametrize("jit_compile", [None, False])
@pytest.mark.parametrize("rows", [1, 5, 7])
def test_against_algorithm_1(jit_compile, rows):
    layer = built()
    naive = Naive(layer.similarity.get_weights()[0])
    function = layer
    if jit_compile is not None:
        function = tf.function(layer, jit_compile=jit_compile)
    filtered = 0
    for number, (x, labels) in enumerate(steps(30, rows)):
        epoch = number // 5
        layer.epochs.assign(epoch)
        actual = function([x, labels], training=True)
        weights, clean = naive.step(x, labels, epoch)
        filtered += clean.count(False)
        np.testing.assert_allclose(actual[:, 1], weights, rtol=1e-4)
        np.testing.assert_allclose(actual[:, 0], unit(x) @ naive.p.T, atol=1e-5)
        np.testing.assert_allclose(layer.learned, naive.learned, rtol=1e-4)
        np.testing.assert_array_equal(layer.seen, naive.seen)
        held = layer.memory_labels.numpy()
        assert sorted(held[held >= 0]) == sorted(c for _, c in naive.queue)
        sums = np.zeros((CLASSES, DIM))
        for row, label in naive.queue:
            sums[label] += row
        np.testing.assert_allclose(layer.class_sums, sums, atol=1e-5)
        np.testing.assert_array_equal(
            layer.class_counts, np.bincount(held[held >= 0], minlength=CLASSES)
        )
    assert filtered or rows == 1


def test_a_batch_larger_than_the_memory_leaves_its_last_rows():
    layer = built()
    layer.epochs.assign(1)
    ((x, labels),) = steps(1, rows=9)
    layer([x, labels], training=True)
    np.testing.assert_array_equal(layer.memory_labels, labels[2:])
    np.testing.assert_allclose(layer.memory, unit(x[2:]), rtol=1e-5)


def test_nothing_changes_outside_of_training():
    layer = built()
    before = layer.get_weights()
    ((x, labels),) = steps(1)
    layer([x, labels], training=False)
    for a, b in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_have_no_gradient():
    layer = built()
    ((x, labels),) = steps(1)
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(layer([x, labels])[:, 1])
    np.testing.assert_array_equal(tape.gradient(value, x), np.zeros((5, DIM)))


def test_decays():
    ((x, labels),) = steps(1)
    own = {}
    for decay in ("sigma", "lower_bound", "reciprocal", "none"):
        layer = built(decay=decay)
        layer.seen.assign([20.0] * CLASSES)
        layer.epochs.assign(2)
        # Nothing is informative: all rows are beyond the learned similarity.
        layer.learned.assign([-5.0] * CLASSES)
        own[decay] = layer([x, labels])[:, 1].numpy()[np.arange(5), labels][0]
    effective = 5 * (1 - 0.8**20)
    np.testing.assert_allclose(own["reciprocal"], 1 / effective, rtol=1e-5)
    np.testing.assert_allclose(
        own["lower_bound"], 1 / (1 + np.log(1 + effective)), rtol=1e-5
    )
    assert own["lower_bound"] < own["sigma"] < 1
    assert own["none"] == 1


def test_roundtrip():
    revived = roundtrip(layers.SampleAwareProxies(**ARGUMENTS, decay="none"))
    assert revived.memory_size == 7


def small_model():
    keras.utils.set_random_seed(0)
    image = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    h = layers.EmbeddingHead(DIM, name="head")(image)
    head = layers.SampleAwareProxies(**ARGUMENTS, name="proxies")
    model = keras.Model({"image": image, "label": label}, head([h, label]))
    model.compile(keras.optimizers.SGD(0.05), losses.ProxyISA())
    return model


def batches():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((24, 6)).astype("float32")
    y = rng.integers(0, CLASSES, 24).astype("int32")
    data = tf.data.Dataset.from_tensor_slices(({"image": x, "label": y}, y))
    return data.batch(6)


def fit(model, epochs):
    history = model.fit(
        batches(),
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[callbacks.CountEpochs()],
    )
    return history.history["loss"]


def test_saved_in_the_middle_it_goes_on_as_if_not(tmp_path):
    whole = small_model()
    fit(whole, 5)
    part = small_model()
    fit(part, 3)
    part.save(tmp_path / "model.keras")
    part = keras.saving.load_model(tmp_path / "model.keras")
    fit(part, 2)
    head = part.get_layer("proxies")
    assert int(head.epochs.numpy()) == 5
    assert np.any(head.memory_labels.numpy() >= 0)
    for a, b in zip(part.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_replicas_remember_the_same(strategy):
    one = small_model()
    expected = fit(one, 4)
    with strategy.scope():
        two = small_model()
    np.testing.assert_allclose(fit(two, 4), expected, rtol=1e-4)
    names = [w.path for w in one.weights]
    for name, a, b in zip(
        names, two.get_weights(), one.get_weights(), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=name)
    assert np.any(one.get_layer("proxies").memory_labels.numpy() >= 0)
    head = two.get_layer("proxies")
    for name in STATE:
        copies = strategy.experimental_local_results(getattr(head, name).value)
        np.testing.assert_array_equal(copies[0], copies[1])


def test_the_callback_needs_the_layer():
    x = keras.Input((6,))
    model = keras.Model(x, layers.Proxies(3)(x))
    model.compile("sgd", losses.ProxyAnchor())
    with pytest.raises(ValueError, match="needs a model with a `SampleAware"):
        model.fit(
            np.ones((2, 6)),
            np.zeros(2, "int32"),
            verbose=0,
            callbacks=[callbacks.CountEpochs()],
        )


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"memory_size": 0}, "`memory_size`.*memory_size=0"),
        ({"volume": 1.0}, "`volume` must be above 1.*volume=1.0"),
        ({"decay": "slow"}, "`decay`.*'sigma'.*decay='slow'"),
        ({"filter_epoch": 0}, "`filter_epoch`.*memory_epoch=1.*epoch=0"),
        ({"num_classes": 0}, "`num_classes`.*num_classes=0"),
    ],
)
def test_arguments_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        layers.SampleAwareProxies(**{**ARGUMENTS, **changes})
