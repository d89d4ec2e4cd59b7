"""What every loss promises, over the one table of `cases.py`."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.arguments import arguments_of
from keras_dml.models import get_head
from tests.conformance import numerical_gradient, roundtrip
from tests.losses.cases import BATCHES, CASES, CLASSES, LABELS

EACH = pytest.mark.parametrize("name", CASES)
# The arguments of a loss on similarities make no difference to its head.
WITH_HEAD = pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if not (case.predictions.__name__.startswith("cos") and case.arguments)
    ],
)
# Two cases of one loss and one head differ in arguments, which train alike.
ONCE = pytest.mark.parametrize(
    "name",
    {
        (case.cls, case.options, case.head): name
        for name, case in reversed(CASES.items())
    }.values(),
)
HALF = pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)


def value_and_gradient(loss, labels, y_pred):
    y_pred = tf.convert_to_tensor(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        value = loss(labels, y_pred)
    return value, tape.gradient(value, y_pred)


def assert_finite(*tensors):
    for tensor in tensors:
        # `None` would be a graph that is not connected.
        assert tensor is not None
        assert np.isfinite(tf.convert_to_tensor(tensor)).all()


def head_of(case):
    return get_head(case.head or case.cls.takes)


def small_model(name):
    """An embedder of two layers, the head of the loss, and the loss."""
    keras.utils.set_random_seed(0)
    case = CASES[name]
    x = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    embedding = layers.EmbeddingHead(5, name="head")(x)
    y_pred = head_of(case).connect(embedding, label, CLASSES, case.options())
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


def test_every_loss_is_in_the_table():
    public = {
        cls
        for cls in losses.PUBLIC.values()
        if inspect.isclass(cls) and not inspect.isabstract(cls)
    }
    assert public - {losses.Loss} == {case.cls for case in CASES.values()}


@pytest.mark.parametrize("key", losses.LOSSES)
def test_every_loss_has_a_function_and_a_documented_class(key):
    assert inspect.isfunction(getattr(losses, f"{key}_loss"))
    text = inspect.getdoc(losses.LOSSES[key])
    for part in ("L", "Args:", "Example:", "```python", "Reference:"):
        assert part in text, part


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("batch", BATCHES)
def test_against_loops(name, batch):
    case, labels = CASES[name], BATCHES[batch]
    if case.loop is None:
        pytest.skip("the loss draws at random")
    y_pred = case.predictions(labels)
    rows = case.make(dtype="float64", reduction="none")(labels, y_pred)
    assert rows.shape == labels.shape
    expected = case.loop(labels, y_pred, **case.arguments)
    if np.ndim(expected):
        np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        np.mean(rows), np.mean(expected), rtol=1e-9, atol=1e-12
    )
    single = case.make()(labels, y_pred.astype("float32"))
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, np.mean(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("batch", BATCHES)
def test_gradient_against_differences(name, batch):
    case, labels = CASES[name], BATCHES[batch]
    if batch != "mixed" and case.class_axis is None:
        pytest.skip("degenerate rows of embeddings have their own test")
    loss, y_pred = case.make(dtype="float64"), case.predictions(labels)
    _, gradient = value_and_gradient(loss, labels, y_pred)
    expected = numerical_gradient(
        lambda y: float(loss(labels, y)), y_pred, 1e-6
    )
    if case.fixed_columns:
        expected[..., -case.fixed_columns :] = 0.0
    size = abs(expected).max()
    assert size > 1e-4
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * size)


@pytest.mark.slow
@EACH
def test_eager_graph_and_xla_agree(name):
    loss = CASES[name].make()

    def run(y_pred):
        return value_and_gradient(loss, LABELS, y_pred)

    y_pred = tf.constant(CASES[name].predictions(LABELS), "float32")
    wanted = run(y_pred)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for a, w in zip(compiled(y_pred), wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@EACH
def test_computes_in_float32_under_any_policy(name, policy):
    case = CASES[name]
    half = tf.cast(case.predictions(LABELS), "float16")
    value, gradient = value_and_gradient(case.make(), LABELS, half)
    assert value.dtype == "float32"
    assert_finite(gradient)
    expected = case.make(dtype="float64")(LABELS, tf.cast(half, "float64"))
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


@EACH
@HALF
def test_half_precision_is_refused(name, dtype):
    with pytest.raises(ValueError, match="half precision.*float16"):
        CASES[name].make(dtype=dtype)


@EACH
def test_the_order_of_the_rows_does_not_matter(name):
    case = CASES[name]
    if case.ordered:
        pytest.skip("the first rows of a class are its anchors, or places draw")
    order = np.random.default_rng(5).permutation(len(LABELS))
    loss, y_pred = case.make(dtype="float64"), case.predictions(LABELS)
    value, gradient = value_and_gradient(loss, LABELS, y_pred)
    other, moved = value_and_gradient(loss, LABELS[order], y_pred[order])
    np.testing.assert_allclose(other, value, rtol=1e-9)
    np.testing.assert_allclose(moved, gradient.numpy()[order], atol=1e-9)


@EACH
def test_the_names_of_the_classes_do_not_matter(name):
    """Proxies move with their class; of pairs only equality counts."""
    case = CASES[name]
    loss, y_pred = case.make(dtype="float64"), case.predictions(LABELS)
    if case.class_axis is None:
        # The samples of classes are in ascending order.
        renamed, moved = 33_333 * LABELS + 7, y_pred
    else:
        order = np.array([2, 0, 3, 1])
        renamed, moved = order[LABELS].astype("int32"), y_pred.copy()
        by_class = np.moveaxis(moved, case.class_axis, 0)
        by_class[order] = np.moveaxis(y_pred, case.class_axis, 0)[:CLASSES]
    np.testing.assert_allclose(
        loss(renamed, moved), loss(LABELS, y_pred), rtol=1e-9
    )


@EACH
def test_sample_weights_weigh_rows(name):
    weights = np.array([1, 0, 2, 0, 0, 1, 0, 3], "float32")
    case = CASES[name]
    y_pred = case.predictions(LABELS)
    rows = case.make(reduction="none")(LABELS, y_pred)
    np.testing.assert_allclose(
        case.make()(LABELS, y_pred, sample_weight=weights),
        np.mean(weights * rows),
        rtol=1e-5,
    )


@EACH
def test_labels_may_be_a_column(name):
    loss, y_pred = CASES[name].make(), CASES[name].predictions(LABELS)
    np.testing.assert_array_equal(
        loss(LABELS[:, None], y_pred), loss(LABELS, y_pred)
    )


@EACH
def test_refused_input(name):
    loss, y_pred = CASES[name].make(), CASES[name].predictions(LABELS)
    one_hot = np.eye(CLASSES, dtype="int32")[LABELS]
    refused = [
        (LABELS.astype("float32"), y_pred, "dtype float32.*astype"),
        (one_hot.astype("float32"), y_pred, "dtype float32"),
        (one_hot, y_pred, r"one-hot.*\(8, 4\).*argmax"),
        (LABELS[:0], y_pred[:0], r"at least one row.*\(0, "),
        (LABELS[:5], y_pred, r"same number of rows.*\(5,\).*\(8, "),
        (LABELS[:, None, None], y_pred, r"y_true.*\(8, 1, 1\)"),
        (LABELS, np.ones(8), r"[Rr]eceived.*y_pred.shape=\(8,"),
        (LABELS, np.ones((8, 4, 2, 2)), r"y_pred.shape=\(8, 4, 2, 2"),
    ]
    if not getattr(loss, "takes_centers", False):
        refused.append(
            (LABELS, np.ones((8, 4, 1)), r"y_pred.shape=\(8, ., 1\)")
        )
    for labels, predictions, message in refused:
        # The terms of a loss made of others speak for themselves.
        speaker = f"'{loss.name}'.*" if loss.takes else ""
        with pytest.raises(ValueError, match=speaker + message):
            loss(labels, predictions)


@EACH
def test_numbers_are_checked(name):
    case = CASES[name]
    numbers = [
        key
        for key, value in case.make().get_config().items()
        if type(value) is float
    ]
    for key in numbers:
        wrong = [float("nan"), float("inf"), "1", True]
        if inspect.signature(case.cls).parameters[key].default is not None:
            wrong.append(None)
        for value in wrong:
            with pytest.raises(ValueError, match=f"`{key}`.*Received: {key}"):
                case.cls(**{**case.arguments, key: value})


@EACH
def test_config_roundtrip(name):
    loss = CASES[name].make(reduction="sum", name="other", dtype="float64")
    revived = roundtrip(loss)
    assert set(arguments_of(CASES[name].cls)) == set(loss.get_config())
    assert revived.dtype == "float64"
    assert type(losses.get(losses.serialize(loss))) is type(loss)
    y_pred = CASES[name].predictions(LABELS)
    np.testing.assert_array_equal(revived(LABELS, y_pred), loss(LABELS, y_pred))


ROWS = np.random.default_rng(0).standard_normal((8, 5))
DEGENERATE = {
    "no positives": (np.arange(4), ROWS[:4]),
    "one class": (np.zeros(8), ROWS),
    "one row": (LABELS[:1], ROWS[:1]),
    "duplicates": (LABELS, np.repeat(ROWS[:1], 8, axis=0)),
    "duplicates in pairs": (LABELS, np.repeat(ROWS[:4], 2, axis=0)),
    "zero vectors": (LABELS, 0 * ROWS),
    "one zero vector": (LABELS, ROWS * (np.arange(8) != 2)[:, None]),
    "long vectors": (LABELS, 1e4 * ROWS),
    "longest vectors": (LABELS, 1e15 * ROWS),
    "short vectors": (LABELS, 1e-4 * ROWS),
    "shortest vectors": (LABELS, 1e-30 * ROWS),
}


@pytest.mark.slow
@WITH_HEAD
@pytest.mark.parametrize("batch", DEGENERATE)
def test_degenerate_embeddings_are_finite(name, batch):
    """Through the head that stands in front of the loss, weights and all."""
    keras.utils.set_random_seed(0)
    case, (labels, rows) = CASES[name], DEGENERATE[batch]
    if batch.startswith("long") and name in UNBOUNDED:
        rows = 10 * ROWS
    model = head_model(case, CLASSES)
    labels = tf.constant(labels, "int32")
    for _ in range(2):
        x = tf.constant(rows, "float32")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y_pred = model([x, labels], training=True)
            value = case.make()(labels, y_pred)
        variables = [v.value for v in model.trainable_variables]
        assert_finite(value, *tape.gradient(value, [x, *variables]))
    assert_finite(*model.get_weights())
    pairs = case.class_axis is None and case.head is None and case.loop
    at_a_margin = "duplicates" in batch or batch == "one zero vector"
    # Next to nothing counts as a zero vector.
    if pairs and not at_a_margin and batch != "shortest vectors":
        np.testing.assert_allclose(
            value, case.expected(labels.numpy(), y_pred), rtol=1e-4, atol=1e-5
        )


# Inner products and squared distances of vectors that are not normalized.
UNBOUNDED = {
    name
    for name, case in CASES.items()
    if not getattr(case.make(), "normalize", True)
}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if case.class_axis is None and name not in UNBOUNDED
    ],
)
def test_the_largest_numbers_of_half_precision_are_finite(name):
    case = CASES[name]
    y_pred = case.predictions(LABELS)
    half = tf.cast(y_pred * (65504.0 / abs(y_pred).max()), "float16")
    assert_finite(*value_and_gradient(case.make(), LABELS, half))


@pytest.mark.slow
@WITH_HEAD
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**40])
def test_the_length_of_embeddings_does_not_matter(name, scale):
    """Through the head; gradients shrink as the embeddings grow."""
    case = CASES[name]
    if name in UNBOUNDED or case.options().proxies.get("metric") == "dot":
        pytest.skip("it compares embeddings that are not normalized")
    found = []
    for factor in (1.0, scale):
        keras.utils.set_random_seed(0)
        model, loss = head_model(case, CLASSES), case.make()
        x = tf.constant(factor * ROWS, "float32")
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(LABELS, model([x, tf.constant(LABELS)]))
        found.append((value, factor * tape.gradient(value, x)))
    (value, gradient), (other, scaled) = found
    np.testing.assert_allclose(other, value, rtol=1e-5)
    np.testing.assert_allclose(scaled, gradient, rtol=1e-4, atol=1e-6)


def head_model(case, classes):
    """The head as a model of embeddings and labels."""
    embedding = keras.Input((5,))
    label = keras.Input((), dtype="int32")
    head = head_of(case)
    y_pred = head.connect(embedding, label, classes, case.options())
    return keras.Model([embedding, label], y_pred)


@pytest.mark.slow
@WITH_HEAD
def test_many_classes(name):
    """The step of a model of 100,000 classes, compiled."""
    keras.utils.set_random_seed(0)
    case = CASES[name]
    model, loss = head_model(case, case.classes), case.make()
    labels = tf.constant(LABELS * (case.classes // 4))
    x = tf.constant(ROWS, "float32")

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(labels, model([x, labels], training=True))
        return value, tape.gradient(value, x)

    value, gradient = step(x)
    assert_finite(value, gradient)
    assert np.any(gradient)


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("size", [0.0, 1.0, -1.0, 1e4, -1e30])
def test_extreme_predictions_are_finite(name, size):
    case = CASES[name]
    y_pred = case.predictions(LABELS)
    y_pred = np.where(np.isfinite(y_pred), size, y_pred).astype("float32")
    if case.class_axis is None and abs(size) > 1:
        pytest.skip("long embeddings have their own test")
    if name.startswith("our_loss_2") and abs(size) > 1e4:
        pytest.skip("it multiplies cosines of rows and proxies")
    if name == "proxy_isa" and size == 0:
        pytest.skip("columns that count rows are not zero")
    assert_finite(*value_and_gradient(case.make(), LABELS, y_pred))


OWN_LAYER = pytest.mark.parametrize(
    "name",
    [
        "margin_sampled",
        "with_memory",
        "proxy_isa",
        "proxynca_isa",
        "on_sampled_classes",
    ],
)


@pytest.mark.slow
@OWN_LAYER
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_layer_with_a_state_and_its_loss_agree_compiled(name, dtype):
    """Eager, as a graph and by XLA; also of embeddings in half precision."""
    results = []
    labels = tf.constant(LABELS)
    for compiled in (
        lambda step: step,
        tf.function,
        lambda step: tf.function(step, jit_compile=True),
    ):
        keras.utils.set_random_seed(0)
        model, loss = head_model(CASES[name], CLASSES), CASES[name].make()

        @compiled
        def step(x, model=model, loss=loss):
            half = tf.cast(x, dtype)
            with tf.GradientTape() as tape:
                tape.watch(half)
                value = loss(labels, model([half, labels], training=True))
            return value, tape.gradient(value, half)

        step(tf.constant(ROWS[::-1].copy(), "float32"))
        results.append(step(tf.constant(ROWS, "float32")))
    assert results[0][0].dtype == "float32"
    assert np.any(results[0][1])
    tolerance = 1e-4 if dtype == "float32" else 2e-3
    for other in results[1:]:
        for actual, wanted in zip(other, results[0], strict=True):
            np.testing.assert_allclose(
                actual, wanted, rtol=tolerance, atol=tolerance
            )


WITH_PROXIES = pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.class_axis == 1]
)


@WITH_PROXIES
def test_duplicated_rows(name):
    case, labels = CASES[name], np.array([0, 0, 1, 1, 1, 1], "int32")
    y_pred = np.repeat(case.predictions(labels[:3]), 2, axis=0)
    value, gradient = value_and_gradient(
        case.make(dtype="float64"), labels, y_pred
    )
    np.testing.assert_allclose(value, case.expected(labels, y_pred), rtol=1e-9)
    np.testing.assert_allclose(gradient[0], gradient[1])


@WITH_PROXIES
def test_a_row_on_its_own_proxy_is_finite(name):
    """Cosines of 1 and -1, where an arc cosine has no derivative."""
    case = CASES[name]
    model = head_model(case, CLASSES)
    proxies = model.get_layer("proxies")
    own = np.eye(5, dtype="float32")[:4] * np.array([[1], [-1], [1], [-1]])
    own[1, :2] = -1, 0
    values = np.repeat(own, proxies.proxies.shape[1], axis=0)
    if len(proxies.proxies.shape) == 2:
        values = own
    proxies.set_weights([values.reshape(proxies.proxies.shape)])
    rows, labels = tf.constant(own, "float32"), tf.constant([0, 1, 2, 3])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        value = case.make()(labels, model([rows, labels]))
    assert_finite(value, *tape.gradient(value, [rows, proxies.proxies.value]))


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
