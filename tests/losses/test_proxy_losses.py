"""Laws of the losses that scale similarities to proxies by themselves."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import numerical_gradient, roundtrip
from tests.losses import naive_proxy_losses as naive

RNG = np.random.default_rng(0)
CLASSES = 4
LABELS = np.array([0, 3, 1, 1, 2, 0], "int32")

# Class, arguments other than the defaults, centers, and the loop.
CASES = {
    "proxy_anchor": (
        losses.ProxyAnchor,
        {"scale": 8.0, "margin": 0.2},
        1,
        naive.proxy_anchor,
    ),
    "arcface": (
        losses.ArcFace,
        {"margin": 1.2, "scale": 8.0},
        1,
        naive.arcface,
    ),
    "cosface": (
        losses.CosFace,
        {"margin": 0.1, "scale": 8.0},
        1,
        naive.cosface,
    ),
    "soft_triple": (
        losses.SoftTriple,
        {"margin": 0.1, "scale": 8.0, "gamma": 3.0},
        3,
        naive.soft_triple,
    ),
    "soft_triple_of_one_centre": (
        losses.SoftTriple,
        {"gamma": 3.0},
        1,
        naive.soft_triple,
    ),
    "sub_center_arcface": (
        losses.SubCenterArcFace,
        {"margin": 0.3, "scale": 8.0},
        3,
        naive.sub_center_arcface,
    ),
    "our_loss_1": (
        losses.OurLoss1,
        {"scale": 8.0, "margin": 0.2},
        1,
        naive.our_loss_1,
    ),
    "our_loss_2": (
        losses.OurLoss2,
        {"scale": 4.0, "margin": 0.2, "reduction_over_batch": "mean"},
        1,
        naive.our_loss_2,
    ),
}

# Labels of batches that lack something.
BATCHES = {
    "mixed": LABELS,
    "one_class": np.full(6, 2, "int32"),
    "one_row": np.array([1], "int32"),
    "all_alone": np.arange(4, dtype="int32"),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def cosines(rows, centers, dtype="float64"):
    """Similarities of unit vectors, so that they are what losses meet."""
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 5))
    p = rng.standard_normal((CLASSES, centers, 5))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    p /= np.linalg.norm(p, axis=-1, keepdims=True)
    values = np.einsum("id,ckd->ick", x, p)
    return (values if centers > 1 else values[:, :, 0]).astype(dtype)


def value_and_gradient(loss, labels, similarities):
    similarities = tf.convert_to_tensor(similarities)
    with tf.GradientTape() as tape:
        tape.watch(similarities)
        value = loss(labels, similarities)
    return value, tape.gradient(value, similarities)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("defaults", [True, False])
def test_against_loops(case, batch, defaults):
    cls, arguments, centers, loop = case
    arguments = {} if defaults else arguments
    labels = BATCHES[batch]
    s = cosines(len(labels), centers)
    expected = loop(labels, s, **arguments)
    assert expected.shape == labels.shape
    loss = cls(**arguments, reduction="none", dtype="float64")
    np.testing.assert_allclose(loss(labels, s), expected, rtol=1e-10)
    loss = cls(**arguments, reduction="none")
    np.testing.assert_allclose(
        loss(labels, s.astype("float32")), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("batch", BATCHES)
def test_gradient_against_differences(case, batch):
    cls, arguments, centers, _ = case
    loss = cls(**arguments, dtype="float64")
    labels = BATCHES[batch]
    s = cosines(len(labels), centers)
    _, gradient = value_and_gradient(loss, labels, s)
    expected = numerical_gradient(lambda s: float(loss(labels, s)), s, 1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_duplicated_rows(case):
    cls, arguments, centers, loop = case
    s = np.repeat(cosines(3, centers), 2, axis=0)
    labels = np.array([0, 0, 1, 1, 1, 1], "int32")
    loss = cls(**arguments, reduction="none", dtype="float64")
    np.testing.assert_allclose(
        loss(labels, s), loop(labels, s, **arguments), rtol=1e-10
    )
    _, gradient = value_and_gradient(loss, labels, s)
    np.testing.assert_allclose(gradient[0], gradient[1])


def test_roundtrip(case):
    cls, arguments, _, _ = case
    roundtrip(cls(**arguments, reduction="sum", name="other"))


def test_computes_in_float32_under_any_policy(case, policy):
    cls, arguments, centers, loop = case
    half = tf.cast(cosines(6, centers), "float16")
    loss = cls(**arguments, reduction="none")
    assert loss(LABELS, half).dtype == "float32"
    expected = loop(LABELS, half.numpy().astype("float64"), **arguments)
    np.testing.assert_allclose(loss(LABELS, half), expected, rtol=1e-4)


def test_eager_graph_and_xla_agree(case):
    cls, arguments, centers, _ = case

    def run(similarities):
        return value_and_gradient(cls(**arguments), LABELS, similarities)

    s = tf.constant(cosines(6, centers, "float32"))
    expected = run(s)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for actual, wanted in zip(compiled(s), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1.0, -1.0, 1e4])
def test_extreme_similarities_are_finite(case, size):
    cls, _, centers, _ = case
    s = size * np.ones_like(cosines(6, centers, "float32"))
    value, gradient = value_and_gradient(cls(), LABELS, s)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 1000.0])
def test_gradient_reaches_degenerate_embeddings_finitely(case, scale):
    """Zero vectors, duplicated rows and extreme lengths."""
    cls, _, centers, _ = case
    proxies = layers.Proxies(CLASSES, centers=centers)
    rows = np.repeat(RNG.standard_normal((2, 5)), 3, axis=0) * scale
    rows = tf.constant(rows.astype("float32"))
    with tf.GradientTape() as tape:
        tape.watch(rows)
        value = cls()(LABELS, proxies(rows))
    gradients = tape.gradient(value, [rows, proxies.proxies.value])
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_a_row_on_its_own_proxy_is_finite(case):
    """Cosines of 1 and -1, where an arc cosine has no derivative."""
    cls, _, centers, _ = case
    proxies = layers.Proxies(CLASSES, centers=centers)
    proxies.build((None, 2))
    own = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], "float32")
    values = np.repeat(own, centers, axis=0)
    proxies.set_weights([values.reshape(proxies.proxies.shape)])
    rows = tf.constant(own)
    labels = np.arange(4)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        value = cls()(labels, proxies(rows))
    gradients = tape.gradient(value, [rows, proxies.proxies.value])
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_many_classes(case):
    cls, _, centers, _ = case
    # The time of OurLoss2 grows with the square of the classes.
    classes = 5_000 if cls is losses.OurLoss2 else 100_000
    shape = (3, classes, centers) if centers > 1 else (3, classes)
    s = RNG.uniform(-1, 1, shape).astype("float32")
    labels = np.array([0, classes - 1, classes - 1], "int32")
    value, gradient = value_and_gradient(cls(), labels, s)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert np.any(gradient[0, 0])


def test_labels_may_be_a_column(case):
    cls, _, centers, _ = case
    s = cosines(6, centers, "float32")
    np.testing.assert_array_equal(cls()(LABELS[:, None], s), cls()(LABELS, s))


def test_refused_input(case):
    cls, _, centers, _ = case
    s = cosines(6, centers, "float32")
    for labels, similarities, message in (
        (LABELS.astype("float32"), s, "dtype float32.*astype"),
        (np.eye(4, dtype="int32")[LABELS], s, r"one-hot.*\(6, 4\).*argmax"),
        (LABELS[:5], s, r"same number of rows.*\(5,\).*\(6, 4"),
        (LABELS, s[:, 0].ravel(), r"classes\).*y_pred.shape=\("),
        (LABELS, np.ones((6, 4, 2, 2), "float32"), r"y_pred.*\(6, 4, 2, 2\)"),
    ):
        with pytest.raises(ValueError, match=f"'{cls().name}'.*{message}"):
            cls()(labels, similarities)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision_is_refused(case, dtype):
    with pytest.raises(ValueError, match="half precision.*float16"):
        case[0](dtype=dtype)


def test_arguments_are_checked(case):
    cls, arguments, _, _ = case
    numbers = [name for name in arguments if type(arguments[name]) is float]
    for name in numbers:
        for value in (float("nan"), "1", None, True):
            with pytest.raises(ValueError, match=f"`{name}`.*Received: {name}"):
                cls(**{name: value})


def small_model(cls, centers):
    x = keras.Input((6,))
    h = layers.EmbeddingHead(5, name="head")(x)
    h = layers.Proxies(CLASSES, centers=centers, name="proxies")(h)
    model = keras.Model(x, h)
    model.compile(keras.optimizers.SGD(0.05), cls())
    return model


def train(cls, centers):
    keras.utils.set_random_seed(0)
    model = small_model(cls, centers)
    data = np.random.default_rng(1).standard_normal((80, 6)).astype("float32")
    labels = np.random.default_rng(2).integers(0, CLASSES, 80).astype("int32")
    batches = tf.data.Dataset.from_tensor_slices((data, labels)).batch(16)
    history = model.fit(batches, epochs=1, verbose=0, shuffle=False)
    return history.history["loss"], model.get_weights()


def test_replicas_do_not_change_training(case, strategy):
    """Five steps; both replicas have rows of every class."""
    cls, _, centers, _ = case
    expected_loss, expected = train(cls, centers)
    with strategy.scope():
        actual_loss, actual = train(cls, centers)
    np.testing.assert_allclose(actual_loss, expected_loss, rtol=1e-4)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-5)


def test_model_with_the_loss_is_saved_and_loaded(case, tmp_path):
    cls, _, centers, _ = case
    model = small_model(cls, centers)
    rows = RNG.standard_normal((6, 6)).astype("float32")
    model.fit(rows, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(rows, LABELS, verbose=0),
        model.evaluate(rows, LABELS, verbose=0),
        rtol=1e-6,
    )


def test_training_lowers_the_loss(case):
    cls, _, centers, _ = case
    keras.utils.set_random_seed(0)
    model = small_model(cls, centers)
    model.optimizer.learning_rate.assign(0.01)
    rows = RNG.standard_normal((6, 6)).astype("float32")
    history = model.fit(rows, LABELS, epochs=20, batch_size=6, verbose=0)
    assert history.history["loss"][-1] < 0.9 * history.history["loss"][0]
