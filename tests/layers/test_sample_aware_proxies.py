import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import callbacks, layers, losses
from tests.conformance import roundtrip
from tests.losses.naive_weighted_exponents import join

CLASSES, DIM = 4, 5
ARGUMENTS = {
    "num_classes": CLASSES,
    "scale": 8.0,
    "margin": 0.2,
    "memory_size": 7,
    "volume": 5.0,
    "hardness": 0.6,
    "initial_learned": 0.9,
    "memory_epoch": 1,
    "filter_epoch": 2,
    "sensitivity": 0.2,
    "search_margin": 0.05,
    "tau": 3.0,
}
STATE = ("epochs", "seen", "learned")
MEMORY = ("rows", "labels", "position", "sums", "counts")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class Naive:
    """Algorithm 1 of the paper, one pair at a time, with a list as queue."""

    def __init__(self, proxies, **changes):
        self.arguments = {
            "decay": "sigma",
            "weighting": "exponent",
            "positive_weights": True,
            "negative_weights": True,
            "filter_outliers": True,
            **ARGUMENTS,
            **changes,
        }
        self.p = unit(proxies)
        self.queue = []
        self.learned = np.full(CLASSES, self.arguments["initial_learned"])
        self.seen = np.zeros(CLASSES)

    def decay(self, effective):
        v = 1 / (1 + np.log(1 + effective))
        if self.arguments["decay"] == "lower_bound":
            return v
        if self.arguments["decay"] == "reciprocal":
            return 1 / max(1, effective)
        volume, tau = self.arguments["volume"], self.arguments["tau"]
        return 1 + (1 + np.exp(-tau)) * (v - 1) / (
            1 + np.exp(volume - effective - tau)
        )

    def step(self, x, labels, epoch):
        x = unit(x)
        a, weights = self.arguments, np.ones((len(x), CLASSES))
        begun, clean = epoch >= a["filter_epoch"], []
        for i, c in np.ndindex(weights.shape):
            base = (a["volume"] - 1) / a["volume"]
            effective = (1 - base ** self.seen[c]) / (1 - base)
            length = 1 + a["sensitivity"] * (1 - self.learned[c])
            v = 1 / (1 + np.log(1 + effective))
            outlier = self.learned[c] - (length * v + a["search_margin"])
            s = x[i] @ self.p[c]
            if labels[i] != c:
                if a["negative_weights"] and s < outlier:
                    weights[i, c] = 1 / max(1, effective)
                continue
            clean.append(s >= outlier or not (begun and a["filter_outliers"]))
            if a["positive_weights"] and begun:
                inside = outlier <= s <= self.learned[c]
                weights[i, c] = self.decay(effective) + inside
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


def check_against_algorithm_1(layer, function, rows, **changes):
    """Thirty steps over six epochs; gives how many rows were outliers."""
    naive = Naive(layer.similarity.get_weights()[0], **changes)
    filtered = 0
    for number, (x, labels) in enumerate(steps(30, rows)):
        epoch = number // 5
        layer.epochs.assign(epoch)
        actual = function([x, labels], training=True)
        weights, clean = naive.step(x, labels, epoch)
        filtered += clean.count(False)
        np.testing.assert_allclose(
            actual,
            join(
                labels,
                unit(x) @ naive.p.T,
                weights,
                *(8.0, 0.2, layer.weighting),
            ),
            rtol=1e-4,
            atol=1e-4,
        )
        np.testing.assert_allclose(layer.learned, naive.learned, rtol=1e-4)
        np.testing.assert_array_equal(layer.seen, naive.seen)
        held = layer.memory.labels.numpy()
        assert sorted(held[held >= 0]) == sorted(c for _, c in naive.queue)
        sums = np.zeros((CLASSES, DIM))
        for row, label in naive.queue:
            sums[label] += row
        np.testing.assert_allclose(layer.memory.sums, sums, atol=1e-5)
        np.testing.assert_array_equal(
            layer.memory.counts, np.bincount(held[held >= 0], minlength=CLASSES)
        )
    return filtered


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [None, False, True])
@pytest.mark.parametrize("rows", [1, 5, 7])
def test_against_algorithm_1(jit_compile, rows):
    layer = built()
    function = layer
    if jit_compile is not None:
        function = tf.function(layer, jit_compile=jit_compile)
    filtered = check_against_algorithm_1(layer, function, rows)
    assert filtered or rows == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"decay": "lower_bound"},
        {"decay": "reciprocal"},
        {"positive_weights": False},
        {"negative_weights": False},
        {"positive_weights": False, "negative_weights": False},
        {"filter_outliers": False},
        {"weighting": "summand"},
        {"weighting": "summand", "decay": "reciprocal"},
    ],
)
def test_ablations_against_algorithm_1(changes):
    layer = built(**changes)
    filtered = check_against_algorithm_1(layer, layer, 5, **changes)
    assert (filtered == 0) == ("filter_outliers" in changes)


def test_without_weights_it_is_proxy_anchor():
    layer = built(positive_weights=False, negative_weights=False)
    proxies = layers.Proxies(CLASSES)
    proxies.build((None, DIM))
    proxies.set_weights(layer.similarity.get_weights())
    anchor = losses.ProxyAnchor(scale=8.0, margin=0.2)
    for x, labels in steps(3):
        layer.epochs.assign(5)
        results = []
        for loss, head, inputs in (
            (losses.ProxyISA(), layer, lambda x, y: [x, y]),
            (anchor, proxies, lambda x, _: x),
        ):
            x = tf.constant(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = loss(labels, head(inputs(x, labels)))
            variable = head.trainable_variables[0].value
            results.append((value, *tape.gradient(value, [x, variable])))
        for actual, expected in zip(*results, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("weighting", ["exponent", "summand"])
def test_only_a_weight_before_the_exponential_spares_what_is_far(weighting):
    """Equation 16's weakness: `1 / E` below the cut, where `s + d` < 0."""
    far = np.array([[-1.0, 0.05, 0.0, 0.0, 0.0]])
    exponents = {}
    for weighted in (False, True):
        layer = built(
            positive_weights=False,
            negative_weights=weighted,
            weighting=weighting,
            initial_learned=0.1,
        )
        layer.similarity.set_weights([np.eye(CLASSES, DIM)])
        layer.seen.assign(np.full(CLASSES, 1000.0))
        exponents[weighted] = float(layer([far, np.array([1])])[0, 0, 0])
    assert exponents[False] < 0
    if weighting == "exponent":
        assert exponents[True] > exponents[False]
    else:
        expected = exponents[False] - np.log(ARGUMENTS["volume"])
        assert exponents[True] == pytest.approx(expected, rel=1e-5)


def test_a_batch_larger_than_the_memory_leaves_its_last_rows():
    layer = built()
    layer.epochs.assign(1)
    ((x, labels),) = steps(1, rows=9)
    layer([x, labels], training=True)
    np.testing.assert_array_equal(layer.memory.labels, labels[2:])
    np.testing.assert_allclose(layer.memory.rows, unit(x[2:]), rtol=1e-5)


def test_nothing_changes_outside_of_training():
    layer = built()
    before = layer.get_weights()
    ((x, labels),) = steps(1)
    layer([x, labels], training=False)
    for a, b in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_decays():
    ((x, labels),) = steps(1)
    own = {}
    for decay in ("sigma", "lower_bound", "reciprocal"):
        layer = built(decay=decay)
        layer.seen.assign([20.0] * CLASSES)
        layer.epochs.assign(2)
        # Nothing is informative: all rows are beyond the learned similarity.
        layer.learned.assign([-5.0] * CLASSES)
        own[decay] = float(layer([x, labels])[0, 0, CLASSES + 1])
    effective = 5 * (1 - 0.8**20)
    np.testing.assert_allclose(own["reciprocal"], 1 / effective, rtol=1e-5)
    np.testing.assert_allclose(
        own["lower_bound"], 1 / (1 + np.log(1 + effective)), rtol=1e-5
    )
    assert own["lower_bound"] < own["sigma"] < 1


def test_roundtrip():
    revived = roundtrip(
        layers.SampleAwareProxies(**ARGUMENTS, decay="lower_bound")
    )
    assert revived.memory_size == 7


def small_model(policy=None, loss=losses.ProxyISA, **changes):
    keras.utils.set_random_seed(0)
    image = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    h = layers.EmbeddingHead(DIM, name="head", dtype=policy)(image)
    head = layers.SampleAwareProxies(**ARGUMENTS, name="proxies")
    model = keras.Model({"image": image, "label": label}, head([h, label]))
    model.compile(keras.optimizers.SGD(0.05), loss(), **changes)
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


@pytest.mark.slow
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
    assert np.all(head.memory.labels.numpy() >= 0)
    assert np.any(head.learned.numpy() < 1)
    for a, b in zip(part.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"run_eagerly": True}, {"jit_compile": True}]
)
def test_training_does_not_hang_on_how_it_is_compiled(changes):
    graph = small_model(jit_compile=False)
    expected = fit(graph, 5)
    assert expected[-1] < expected[0]
    model = small_model(**changes)
    np.testing.assert_allclose(fit(model, 5), expected, rtol=1e-4)
    for a, b in zip(model.get_weights(), graph.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_trains_in_float32_under_any_policy(policy):
    model = small_model(policy)
    head = model.get_layer("proxies")
    assert head.compute_dtype == "float32"
    assert {w.dtype for w in head.weights} == {"float32", "int32"}
    assert model.output.dtype == "float32"
    before = model.evaluate(batches(), verbose=0)
    history = fit(model, 5)
    assert np.isfinite(history).all()
    assert history[-1] < history[0]
    keras.config.set_dtype_policy("float32")
    expected = small_model().evaluate(batches(), verbose=0)
    np.testing.assert_allclose(before, expected, rtol=0.02)


@pytest.mark.parametrize("loss", [losses.ProxyISA, losses.ProxyNCAISA])
def test_many_classes(loss):
    """Time and memory are those of batch times classes."""
    classes = 100_000
    layer = layers.SampleAwareProxies(
        classes, memory_size=1_000, filter_outliers=False
    )
    layer.build([(None, 8), (None,)])
    layer.epochs.assign(5)
    labels = np.array([0, classes - 1, classes - 1, 7] * 4, "int32")
    rng = np.random.default_rng(0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = loss()(labels, layer([x, labels], training=True))
        return value, tape.gradient(value, layer.similarity.proxies.value)

    begun = time.perf_counter()
    for _ in range(3):
        x = rng.standard_normal((16, 8)).astype("float32")
        value, gradient = step(tf.constant(x))
    assert time.perf_counter() - begun < 30
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert np.any(gradient[classes - 1])
    seen = layer.seen.numpy()
    assert seen.sum() == 48
    assert seen[classes - 1] == 24


@pytest.mark.slow
@pytest.mark.parametrize("loss", [losses.ProxyISA, losses.ProxyNCAISA])
def test_replicas_remember_the_same(strategy, loss):
    one = small_model(loss=loss)
    expected = fit(one, 4)
    with strategy.scope():
        two = small_model(loss=loss)
    np.testing.assert_allclose(fit(two, 4), expected, rtol=1e-4)
    names = [w.path for w in one.weights]
    for name, a, b in zip(
        names, two.get_weights(), one.get_weights(), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=name)
    assert np.any(one.get_layer("proxies").memory.labels.numpy() >= 0)
    head = two.get_layer("proxies")
    for layer, names in ((head, STATE), (head.memory, MEMORY)):
        for name in names:
            value = getattr(layer, name).value
            copies = strategy.experimental_local_results(value)
            np.testing.assert_array_equal(copies[0], copies[1])


def test_a_label_out_of_range_is_an_error():
    layer = built()
    with pytest.raises(ValueError, match="between 0 and 3, .* label 4 in row"):
        layer([np.ones((1, DIM), "float32"), np.array([CLASSES])])


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
        ({"scale": 0.0}, "`scale` must be a positive.*scale=0.0"),
        ({"memory_size": 0}, "`memory_size`.*memory_size=0"),
        ({"volume": 1.0}, "`volume` must be above 1.*volume=1.0"),
        ({"decay": "slow"}, "`decay`.*'sigma'.*decay='slow'"),
        ({"weighting": "loss"}, "`weighting`.*'summand'.*weighting='loss'"),
        (
            {"filter_epoch": 0},
            "`filter_epoch`.*epoch=0.*`memory_epoch` comes",
        ),
        ({"num_classes": 0}, "`num_classes`.*num_classes=0"),
    ],
)
def test_arguments_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        layers.SampleAwareProxies(**{**ARGUMENTS, **changes})


@pytest.mark.parametrize("weighting", ["exponent", "summand"])
def test_float64_is_float32_with_more_digits(weighting):
    results = []
    for dtype in ("float32", "float64"):
        layer = built(weighting=weighting, dtype=dtype)
        layer.similarity.set_weights([np.eye(CLASSES, DIM) + 0.1])
        layer.epochs.assign(2)
        for x, labels in steps(3):
            with tf.GradientTape() as tape:
                output = layer([x, labels], training=True)
                value = losses.ProxyISA(dtype=dtype)(labels, output)
        gradient = tape.gradient(value, layer.proxies.value)
        assert {output.dtype, gradient.dtype} == {tf.as_dtype(dtype)}
        results.append((output, gradient, layer.learned, layer.seen))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
