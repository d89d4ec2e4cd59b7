"""What every loss promises behind the head that stands in front of it."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.cases import CASES, CLASSES, LABELS
from tests.losses.steps import (
    UNBOUNDED,
    WITH_PROXIES,
    assert_finite,
    head_model,
)

# The arguments of a loss on similarities make no difference to its head.
WITH_HEAD = pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if (case.head or case.cls.takes)
        and not (case.predictions.__name__.startswith("cos") and case.arguments)
    ],
)


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


@functools.cache
def small_head(name):
    """The head of a loss as a model, and its first weights."""
    keras.utils.set_random_seed(0)
    model = head_model(CASES[name], CLASSES)
    return model, model.get_weights()


@pytest.mark.slow
@WITH_HEAD
@pytest.mark.parametrize("batch", DEGENERATE)
def test_degenerate_embeddings_are_finite(name, batch):
    """Through the head that stands in front of the loss, weights and all."""
    case, (labels, rows) = CASES[name], DEGENERATE[batch]
    if batch.startswith("long") and name in UNBOUNDED:
        rows = 10 * ROWS
    model, weights = small_head(name)
    model.set_weights(weights)
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
