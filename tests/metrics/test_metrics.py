"""Metrics for `compile` equal the exact evaluation of all rows of an epoch."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import losses, metrics
from keras_dml.evaluation import evaluate_retrieval
from tests.conformance import roundtrip

RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((83, 6)).astype("float32")
# Classes of one row to nineteen.
LABELS = np.sort(RNG.choice(9, 83, p=np.arange(1, 10) / 45)).astype("int32")
LABELS[0], LABELS[1] = 100, 101
RNG.shuffle(LABELS)
ALL = {
    "recall_at_1": lambda **kwargs: metrics.RecallAtK(1, **kwargs),
    "recall_at_4": lambda **kwargs: metrics.RecallAtK(4, **kwargs),
    "precision_at_1": metrics.PrecisionAt1,
    "r_precision": lambda **kwargs: metrics.RPrecision(30, **kwargs),
    "map_at_r": lambda **kwargs: metrics.MAPAtR(30, **kwargs),
}


def exact(rows, labels, **kwargs):
    found = evaluate_retrieval(
        rows, labels, k=(1, 4), extra_metrics=["precision@1"], **kwargs
    ).metrics
    return {name.replace("@", "_at_"): value for name, value in found.items()}


def in_batches(metric, rows, labels, size, weights=None):
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        metric.update_state(
            labels[part],
            rows[part],
            None if weights is None else weights[part],
        )
    return float(metric.result())


@pytest.mark.parametrize("size", [1, 16, 83])
@pytest.mark.parametrize("name", ALL)
def test_batches_of_any_size_give_the_exact_value(name, size):
    metric = ALL[name](capacity=100)
    assert metric.name == name
    wanted = exact(ROWS, LABELS)[name]
    assert 0 < wanted < 1
    assert in_batches(metric, ROWS, LABELS, size) == pytest.approx(
        wanted, abs=1e-6
    )


@pytest.mark.parametrize("name", ALL)
def test_a_reset_forgets_all_rows(name):
    metric = ALL[name](capacity=100)
    in_batches(metric, 0 * ROWS + 1, 0 * LABELS, 16)
    metric.reset_state()
    assert float(metric.result()) == 0.0
    assert in_batches(metric, ROWS, LABELS, 20) == pytest.approx(
        exact(ROWS, LABELS)[name], abs=1e-6
    )


def test_rows_are_compared_as_they_are_without_normalization():
    metric = metrics.MAPAtR(30, capacity=100, normalize=False)
    wanted = exact(ROWS, LABELS, normalize=False)["map_at_r"]
    assert wanted != pytest.approx(exact(ROWS, LABELS)["map_at_r"], abs=1e-3)
    assert in_batches(metric, ROWS, LABELS, 16) == pytest.approx(
        wanted, abs=1e-6
    )


@pytest.mark.parametrize("shift", [1000.0, -3000.0])
@pytest.mark.parametrize("name", ALL)
def test_a_shift_changes_no_distance(name, shift):
    """Far from the origin, rounding hid all neighbors."""
    # Multiples of 1/16, which float32 holds at any shift.
    rows = np.round(16 * ROWS) / 16
    values = []
    for shifted in (rows, rows + np.float32(shift)):
        metric = ALL[name](capacity=100, normalize=False)
        values.append(in_batches(metric, shifted, LABELS, 16))
    assert values[0] == values[1]
    assert values[0] == pytest.approx(
        exact(rows, LABELS, normalize=False)[name], abs=1e-6
    )


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_first_row_that_is_not_finite_hides_no_other(odd):
    rows = np.concatenate([np.full((1, 6), odd, "float32"), ROWS])
    labels = np.concatenate([[-1], LABELS])
    metric = metrics.PrecisionAt1(capacity=100, normalize=False)
    assert in_batches(metric, rows, labels, 16) == pytest.approx(
        exact(ROWS, LABELS, normalize=False)["precision_at_1"], abs=1e-6
    )


@pytest.mark.parametrize("size", [7, 40])
def test_rows_beyond_the_capacity_are_left_out(size):
    metric = metrics.MAPAtR(30, capacity=50)
    assert in_batches(metric, ROWS, LABELS, size) == pytest.approx(
        exact(ROWS[:50], LABELS[:50])["map_at_r"], abs=1e-6
    )


def test_large_classes_are_measured_to_the_depth():
    # Five copies each of two points a class; the classes alternate.
    angles = np.repeat([0.0, 1.0, 0.5, 1.5], 5) + 0.01 * RNG.random(20)
    similar = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    labels = np.repeat(np.arange(2), 10).astype("int32")
    metric = metrics.RPrecision(depth=4, capacity=30)
    assert in_batches(metric, similar, labels, 6) == 1.0
    assert in_batches(metrics.RPrecision(9, 30), similar, labels, 6) < 1.0


def test_weights_are_those_of_queries():
    weights = (np.arange(83) < 40).astype("float32")
    metric = metrics.RecallAtK(1, capacity=100)
    result = evaluate_retrieval(
        ROWS[:40], LABELS[:40], ROWS, LABELS,
        query_ids=np.arange(40), reference_ids=np.arange(83),
    )  # fmt: skip
    assert in_batches(metric, ROWS, LABELS, 16, weights) == pytest.approx(
        result.metrics["recall@1"], abs=1e-6
    )


def test_equal_rows_come_in_order_and_nan_is_the_farthest():
    rows = np.array([[1, 0], [1, 0], [1, 0], [np.nan, 0]], "float32")
    labels = np.array([0, 1, 0, 1], "int32")
    # Row 0 finds 1, row 1 finds 0, row 2 finds 0; row 3 has no similarity.
    metric = metrics.PrecisionAt1(capacity=5)
    assert in_batches(metric, rows, labels, 1) == 0.25


@pytest.fixture(params=["float16", "bfloat16", "float64"])
def floatx(request):
    usual = keras.config.floatx()
    keras.config.set_floatx(request.param)
    yield request.param
    keras.config.set_floatx(usual)


@pytest.mark.parametrize("name", ALL)
def test_another_floatx_changes_nothing_but_the_dtype_of_the_result(
    name, floatx
):
    metric = ALL[name](capacity=100)
    found = in_batches(metric, ROWS, LABELS, 16)
    assert keras.backend.standardize_dtype(metric.result().dtype) == floatx
    assert found == pytest.approx(exact(ROWS, LABELS)[name], rel=5e-3)


def test_without_a_positive_the_value_is_zero():
    metric = metrics.MAPAtR(capacity=200)
    assert float(metric.result()) == 0.0
    assert in_batches(metric, ROWS, np.arange(83), 16) == 0.0


@pytest.mark.parametrize("name", ALL)
def test_configs_make_the_same_metric(name):
    metric = ALL[name](capacity=100, normalize=False, name="mine")
    revived = roundtrip(metric)
    assert revived.name == "mine"
    assert in_batches(revived, ROWS, LABELS, 16) == in_batches(
        metric, ROWS, LABELS, 16
    )


def embedder():
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
    model.layers[0].set_weights([ROWS[:6, :3], np.zeros(3)])
    return model


def compiled(model, **kwargs):
    model.compile(
        keras.optimizers.SGD(1e-3),
        losses.Contrastive(),
        metrics=[make(capacity=100) for make in ALL.values()],
        **kwargs,
    )
    return model


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
def test_evaluate_and_validation_are_exact(jit):
    model = compiled(embedder(), jit_compile=jit)
    found = model.evaluate(
        ROWS, LABELS, batch_size=16, return_dict=True, verbose=0
    )
    wanted = exact(model.predict(ROWS, verbose=0), LABELS)
    for name in ALL:
        assert found[name] == pytest.approx(wanted[name], abs=1e-6)
    history = model.fit(
        ROWS,
        LABELS,
        batch_size=16,
        epochs=2,
        validation_data=(ROWS, LABELS),
        verbose=0,
    ).history
    wanted = exact(model.predict(ROWS, verbose=0), LABELS)
    for name in ALL:
        assert history[f"val_{name}"][-1] == pytest.approx(
            wanted[name], abs=1e-6
        )


@pytest.mark.slow
def test_a_saved_model_keeps_its_metrics(tmp_path):
    model = compiled(embedder())
    found = model.evaluate(ROWS, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(ROWS, LABELS, verbose=0), found, atol=1e-6
    )


@pytest.mark.slow
def test_replicas_together_are_exact(strategy):
    with strategy.scope():
        model = compiled(embedder())
    found = model.evaluate(
        ROWS[:80], LABELS[:80], batch_size=16, return_dict=True, verbose=0
    )
    wanted = exact(model.predict(ROWS[:80], verbose=0), LABELS[:80])
    for name in ALL:
        assert found[name] == pytest.approx(wanted[name], abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.RecallAtK(0), "`k` must be a positive integer"),
        (lambda: metrics.RecallAtK(9, 9), "`capacity` must be more than 9"),
        (lambda: metrics.PrecisionAt1(1), "`capacity` must be more than 1"),
        (lambda: metrics.MAPAtR(capacity=0), "`capacity` must be"),
        (lambda: metrics.MAPAtR(normalize="no"), "`normalize` must be"),
    ],
)
def test_arguments_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("labels", "rows", "message"),
    [
        (LABELS, ROWS[:, None], "embeddings of shape"),
        (LABELS[:5], ROWS, "integer class labels"),
        (ops.one_hot(LABELS % 7, 7), ROWS, "integer class labels"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(labels, rows, message):
    with pytest.raises(ValueError, match=message):
        metrics.PrecisionAt1().update_state(labels, rows)


def test_columns_that_layers_append_are_left_out():
    """A step of 5,000 beside an embedding hid all neighbors."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 4)).astype("float32")
    labels = np.arange(30) % 5
    wide = np.concatenate([rows, 5000.0 * rng.random((30, 2))], axis=1)
    values = []
    for metric, x in (
        (metrics.MAPAtR(9, 40), rows),
        (metrics.MAPAtR(9, 40, dim=4), wide),
        (metrics.MAPAtR(9, 40), wide),
    ):
        metric.update_state(labels, x)
        values.append(float(metric.result()))
    assert values[0] == values[1] != values[2]
    assert metrics.MAPAtR(9, dim=4).get_config()["dim"] == 4
    with pytest.raises(ValueError, match="`dim` must be at most 6"):
        metrics.RecallAtK(dim=7).update_state(labels, wide)


def test_callbacks_of_keras_find_the_direction():
    model = embedder()
    model.compile(
        keras.optimizers.SGD(1e-3),
        losses.Contrastive(),
        metrics=[metrics.MAPAtR(5, 100)],
    )
    stop = keras.callbacks.EarlyStopping("val_map_at_r", mode="auto")
    model.fit(
        ROWS[:16],
        LABELS[:16],
        validation_data=(ROWS[:16], LABELS[:16]),
        callbacks=[stop],
        verbose=0,
    )
    assert stop.monitor_op is ops.greater


@pytest.mark.parametrize("compiled", [False, True])
def test_labels_that_would_merge_are_refused(compiled):
    metric = metrics.PrecisionAt1(10)

    def update(labels):
        function = metric.update_state
        function = tf.function(function) if compiled else function
        function(labels, ROWS[: len(labels)])

    update(tf.constant([2**31 - 1, -(2**31)], "int64"))
    update(tf.constant([1, 2, 255], "uint8"))
    with pytest.raises(ValueError, match="integer class labels.*float32"):
        update(tf.constant([0.2, 0.9, 1.0]))
    errors = (ValueError, tf.errors.InvalidArgumentError)
    for large in (2**32 + 1, 2**31, -(2**31) - 1):
        with pytest.raises(errors, match="must lie between -2"):
            update(tf.constant([1, 2, large], "int64"))


def test_labels_that_merge_give_nan_where_nothing_raises():
    metric = metrics.PrecisionAt1(10)
    metric.update_state(np.array([7]), ROWS[:1])
    update = tf.function(metric.update_state, jit_compile=True)
    update(tf.constant([1, 2**32 + 1], "int64"), tf.constant(ROWS[1:3]))
    assert np.isnan(float(metric.result()))
