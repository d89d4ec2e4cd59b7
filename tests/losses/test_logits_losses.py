"""Laws of every loss on class logits, and the input they refuse."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import numerical_gradient, roundtrip, to_numpy

RNG = np.random.default_rng(0)
LOGITS = (3 * RNG.standard_normal((6, 4))).astype("float32")
LABELS = np.array([0, 3, 1, 1, 2, 0], "int32")

CROSS_ENTROPIES = (
    losses.Softmax,
    losses.NormalizedSoftmax,
    losses.ProxyNCAPlusPlus,
)
ALL = (*CROSS_ENTROPIES, losses.ProxyNCA)


def naive(cls, labels, logits):
    """One row and one class at a time, in float64."""
    values = []
    for label, row in zip(labels, logits.astype("float64"), strict=True):
        total = sum(
            np.exp(value)
            for c, value in enumerate(row)
            if c != label or cls is not losses.ProxyNCA
        )
        values.append(np.log(total) - row[label])
    return np.array(values)


def gradient_of(function, *arrays):
    variables = [tf.Variable(array) for array in arrays]
    with tf.GradientTape() as tape:
        value = function(*variables)
    return value, tape.gradient(value, variables)


@pytest.mark.parametrize("cls", ALL)
def test_against_loops(cls):
    actual = cls(reduction="none")(LABELS, LOGITS)
    np.testing.assert_allclose(actual, naive(cls, LABELS, LOGITS), rtol=1e-5)
    np.testing.assert_allclose(
        cls()(LABELS, LOGITS), naive(cls, LABELS, LOGITS).mean(), rtol=1e-5
    )


@pytest.mark.parametrize("cls", ALL)
def test_gradient_against_differences(cls):
    loss = cls(dtype="float64")
    logits = LOGITS.astype("float64")
    _, (gradient,) = gradient_of(lambda x: loss(LABELS, x), logits)
    expected = numerical_gradient(lambda x: float(loss(LABELS, x)), logits)
    np.testing.assert_allclose(gradient, expected, atol=1e-8)


@pytest.mark.parametrize("cls", ALL)
def test_roundtrip(cls):
    roundtrip(cls(reduction="sum", name="other"))


@pytest.mark.parametrize("cls", ALL)
def test_computes_in_float32_under_any_policy(cls, policy):
    expected = naive(cls, LABELS, LOGITS)
    assert cls()(LABELS, LOGITS).dtype == "float32"
    np.testing.assert_allclose(
        cls(reduction="none")(LABELS, LOGITS), expected, rtol=1e-5
    )
    half = tf.cast(LOGITS, "float16")
    rounded = naive(cls, LABELS, half.numpy())
    np.testing.assert_allclose(
        cls(reduction="none")(LABELS, half), rounded, rtol=1e-5
    )


@pytest.mark.parametrize("cls", ALL)
def test_eager_graph_and_xla_agree(cls):
    def run(logits):
        loss = cls()
        return gradient_of_graph(loss, logits)

    def gradient_of_graph(loss, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(LABELS, logits)
        return value, tape.gradient(value, logits)

    x = tf.constant(LOGITS)
    expected = run(x)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for actual, wanted in zip(compiled(x), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cls", ALL)
def test_extreme_logits_are_finite(cls):
    for logits in (1000 * LOGITS, np.zeros_like(LOGITS), -1e30 * abs(LOGITS)):
        value, (gradient,) = gradient_of(lambda x: cls()(LABELS, x), logits)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1000.0])
def test_gradient_reaches_degenerate_embeddings_finitely(cls, scale):
    """Zero vectors, duplicated rows and extreme lengths."""
    metric = "cosine" if cls in CROSS_ENTROPIES else "neg_squared_euclidean"
    proxies = layers.Proxies(4, metric)
    rows = np.repeat(RNG.standard_normal((2, 5)), 3, axis=0) * scale
    value, (gradient,) = gradient_of(
        lambda x: cls()(LABELS, 18 * proxies(x)), rows.astype("float32")
    )
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("temperature", [1 / 9, 1.0])
def test_closed_form_on_orthogonal_proxies(cls, temperature):
    """A row on its own proxy, all others orthogonal: cosine 1, distance 2."""
    metric = "cosine" if cls in CROSS_ENTROPIES else "neg_squared_euclidean"
    if cls is losses.ProxyNCAPlusPlus:
        metric = "neg_squared_euclidean"
    classes, contrast = 6, (1 if metric == "cosine" else 2) / temperature
    proxies = layers.Proxies(classes, metric)
    proxies.build((None, classes))
    proxies.set_weights([np.eye(classes)])
    similarity = proxies(3 * np.eye(classes, dtype="float32"))
    loss = cls()(np.arange(classes), similarity / temperature)
    if cls is losses.ProxyNCA:
        expected = np.log(classes - 1) - contrast
    else:
        expected = np.log1p((classes - 1) * np.exp(-contrast))
    np.testing.assert_allclose(loss, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cls", ALL)
def test_sample_weights(cls):
    weights = np.array([1, 0, 2, 0, 0, 1], "float32")
    expected = (weights * naive(cls, LABELS, LOGITS)).mean()
    actual = cls()(LABELS, LOGITS, sample_weight=weights)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("cls", ALL)
def test_labels_may_be_a_column(cls):
    np.testing.assert_array_equal(
        cls()(LABELS[:, None], LOGITS), cls()(LABELS, LOGITS)
    )


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "labels, logits, message",
    [
        (LABELS.astype("float32"), LOGITS, "dtype float32.*astype"),
        (
            np.eye(4, dtype="int32")[LABELS],
            LOGITS,
            r"one-hot.*\(6, 4\).*argmax",
        ),
        (LABELS[:5], LOGITS, r"same number of rows.*\(5,\).*\(6, 4\)"),
        (LABELS, LOGITS[:, :, None], r"\(batch, classes\).*\(6, 4, 1\).*cent"),
        (LABELS, LOGITS[:, 0], r"\(batch, classes\).*y_pred.shape=\(6,\)"),
    ],
)
def test_refused_input(cls, labels, logits, message):
    with pytest.raises(ValueError, match=f"'{cls().name}'.*{message}"):
        cls()(labels, logits)


@pytest.mark.parametrize("cls", [*ALL, losses.WeightedSum])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision_is_refused(cls, dtype):
    arguments = (
        {"losses": [losses.Softmax()]} if cls is losses.WeightedSum else {}
    )
    with pytest.raises(ValueError, match="half precision.*float16"):
        cls(dtype=dtype, **arguments)


def test_float_labels_are_refused_in_fit():
    x = keras.Input((5,))
    model = keras.Model(x, layers.Proxies(4)(x))
    model.compile("sgd", losses.NormalizedSoftmax())
    with pytest.raises(ValueError, match="must be integer class labels"):
        model.fit(np.ones((6, 5)), LABELS.astype("float32"), verbose=0)


def test_proxy_nca_plus_plus_is_a_normalized_softmax_at_half_temperature():
    x = RNG.standard_normal((6, 5)).astype("float32")
    values = []
    for cls, metric, temperature in (
        (losses.ProxyNCAPlusPlus, "neg_squared_euclidean", 1 / 9),
        (losses.NormalizedSoftmax, "cosine", 1 / 18),
    ):
        proxies = layers.Proxies(4, metric)
        proxies.build(x.shape)
        weights = np.random.default_rng(1).standard_normal((4, 5))
        proxies.set_weights([weights])
        values.append(
            gradient_of(
                lambda x, p=proxies, c=cls, t=temperature: c()(
                    LABELS, p(x) / t
                ),
                x,
            )
        )
    (first, (gradient,)), (second, (expected,)) = values
    np.testing.assert_allclose(first, second, rtol=1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5)


def test_heated_gradient():
    """Heated-Up Softmax, equation 3, and its orthogonality to the embedding."""
    scale = 16.0
    proxies = layers.Proxies(4, dtype="float64")
    f = RNG.standard_normal((6, 5))
    proxies.build(f.shape)
    w = proxies.get_weights()[0].astype("float64")
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    unit = f / np.linalg.norm(f, axis=1, keepdims=True)
    loss = losses.NormalizedSoftmax(reduction="sum", dtype="float64")

    _, (by_unit,) = gradient_of(
        lambda x: loss(LABELS, scale * tf.matmul(x, w.T)), unit
    )
    p = np.exp(scale * unit @ w.T)
    p /= p.sum(axis=1, keepdims=True)
    expected = scale * (p - np.eye(4)[LABELS]) @ w
    np.testing.assert_allclose(by_unit, expected, rtol=1e-6)

    _, (by_embedding,) = gradient_of(
        lambda x: loss(LABELS, scale * proxies(x)), f
    )
    np.testing.assert_allclose(np.sum(f * by_embedding, axis=1), 0, atol=1e-10)


def test_cross_entropy_is_bounded_below_and_proxy_nca_is_not():
    logits = np.array([[1e4, 0.0, 0.0]], "float32")
    for cls in CROSS_ENTROPIES:
        assert float(cls()(np.array([0]), logits)) == 0.0
    np.testing.assert_allclose(
        losses.ProxyNCA()(np.array([0]), logits), np.log(2) - 1e4
    )


def test_proxy_nca_on_unit_vectors_reaches_its_documented_minimum():
    """The own proxy at the row, all others opposite: distances 0 and 4."""
    temperature, classes = 1 / 9, 5
    proxies = layers.Proxies(classes, "neg_squared_euclidean")
    proxies.build((None, 2))
    proxies.set_weights([np.array([[1.0, 0.0]] + 4 * [[-1.0, 0.0]])])
    logits = proxies(np.array([[2.0, 0.0]], "float32")) / temperature
    np.testing.assert_allclose(
        losses.ProxyNCA()(np.array([0]), logits),
        np.log(classes - 1) - 4 / temperature,
        rtol=1e-5,
    )


def test_proxy_nca_needs_two_classes():
    with pytest.raises(ValueError, match=r"two classes.*\(3, 1\)"):
        losses.ProxyNCA()(np.zeros(3, "int32"), np.zeros((3, 1), "float32"))


def train(cls):
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    h = layers.EmbeddingHead(5, name="head")(x)
    h = layers.Proxies(4, "neg_squared_euclidean", name="proxies")(h)
    h = layers.ScaledLogits(9.0, use_bias=True, name="logits")(h)
    model = keras.Model(x, h)
    model.compile(keras.optimizers.SGD(0.1), cls())
    data = np.random.default_rng(1).standard_normal((80, 6)).astype("float32")
    labels = (np.arange(80) % 4).astype("int32")
    batches = tf.data.Dataset.from_tensor_slices((data, labels)).batch(16)
    history = model.fit(batches, epochs=1, verbose=0, shuffle=False)
    return history.history["loss"], model.get_weights()


@pytest.mark.parametrize("cls", ALL)
def test_replicas_do_not_change_training(cls, strategy):
    """Five steps on one device and on two replicas."""
    expected_loss, expected = train(cls)
    with strategy.scope():
        actual_loss, actual = train(cls)
    np.testing.assert_allclose(actual_loss, expected_loss, rtol=1e-4)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("cls", ALL)
def test_model_with_the_loss_is_saved_and_loaded(cls, tmp_path):
    x = keras.Input((5,))
    model = keras.Model(x, layers.Proxies(4)(x))
    model.compile("sgd", cls())
    rows = RNG.standard_normal((6, 5)).astype("float32")
    model.fit(rows, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(rows, LABELS, verbose=0),
        model.evaluate(rows, LABELS, verbose=0),
        rtol=1e-6,
    )
    assert to_numpy(revived(rows)).shape == (6, 4)
