"""What every loss promises, over the one table of `cases.py`."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from keras_dml.arguments import arguments_of
from tests.conformance import numerical_gradient, roundtrip
from tests.losses.cases import BATCHES, CASES, CLASSES, LABELS
from tests.losses.steps import (
    UNBOUNDED,
    WITH_PROXIES,
    assert_finite,
    value_and_gradient,
)

EACH = pytest.mark.parametrize("name", CASES)


DIRECTIONS = 6


HALF = pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)


def test_every_loss_is_in_the_table():
    public = {
        cls
        for cls in losses.PUBLIC.values()
        if inspect.isclass(cls) and not inspect.isabstract(cls)
    }
    # `test_distillation.py` holds those of a teacher to their laws.
    elsewhere = {losses.Loss, *losses.DISTILLATIONS.values()}
    assert public - elsewhere == {case.cls for case in CASES.values()}


def test_every_argument_has_another_value_in_a_case():
    """A class that drops an argument, or swaps two, fails in the loops."""
    never = {
        (cls.__name__, argument)
        for cls in {case.cls for case in CASES.values()}
        for argument, parameter in inspect.signature(cls).parameters.items()
        if argument not in ("reduction", "name", "dtype", "kwargs")
        and all(
            case.arguments.get(argument, parameter.default) == parameter.default
            for case in CASES.values()
            if case.cls is cls
        )
    }
    elsewhere = {
        ("ArcFace", "straight_through"),  # of the gradient alone
        ("BarlowTwins", "normalize"),
        ("Circle", "constant_weights"),  # of the gradient alone
        ("Margin", "farthest"),  # of what is drawn
        ("Margin", "nearest"),
        ("NPair", "normalize"),
        ("SimSiam", "average"),  # refused
        ("SimSiam", "miner"),
        ("SimSiam", "normalize"),
        ("SimSiam", "similarity"),
        ("WithDistillation", "weight"),
    }
    assert never == elsewhere


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
    if name.startswith(("dynamic_soft_margin", "ranked_list_1.0")):
        pytest.skip("its weights are constants, as its own test has them")
    loss, y_pred = case.make(dtype="float64"), case.predictions(labels)
    _, gradient = value_and_gradient(loss, labels, y_pred)
    moved = np.ones(y_pred.shape, bool)
    if case.fixed_columns:
        moved[..., -case.fixed_columns :] = False
    gradient = gradient.numpy()
    assert not np.any(gradient[~moved])
    assert abs(gradient).max() > 1e-4
    # A mistake in one entry shows in every direction.
    for seed in range(DIRECTIONS):
        draw = np.random.default_rng(seed).standard_normal(y_pred.shape)
        direction = moved * draw
        (expected,) = numerical_gradient(
            lambda step, d=direction: float(loss(labels, y_pred + step[0] * d)),
            np.zeros(1),
            1e-6,
        )
        size = np.sqrt(np.sum(gradient**2))
        np.testing.assert_allclose(
            np.sum(gradient * direction), expected, atol=1e-5 * size
        )


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
@pytest.mark.parametrize("wrong", ["\\0", "my loss", "_loss", "größe"])
def test_names_that_no_scope_takes_are_refused(name, wrong):
    with pytest.raises(ValueError, match="`name` must be letters.*Received"):
        CASES[name].make(name=wrong)


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
        # A sample of classes is in ascending order.
        sampled = name == "on_sampled_classes"
        names = [7, 33, 8_000, 99_999] if sampled else [8_000, 7, 99_999, 33]
        renamed, moved = np.array(names, "int32")[LABELS], y_pred
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
    if name == "p2s_grad" and abs(size) > 1e4:
        pytest.skip("it squares cosines")
    if name == "proxy_isa" and size == 0:
        pytest.skip("columns that count rows are not zero")
    assert_finite(*value_and_gradient(case.make(), LABELS, y_pred))


@EACH
def test_nan_in_nan_out(name):
    """A network of NaN had the loss 0, so that it was kept as the best."""
    case = CASES[name]
    y_pred = case.predictions(LABELS)
    y_pred[1] = np.nan
    value, gradient = value_and_gradient(case.make(), LABELS, y_pred)
    assert np.isnan(value)
    assert np.isnan(gradient).any()
    value, _ = value_and_gradient(case.make(), LABELS, np.nan * y_pred)
    assert np.isnan(value)


@WITH_PROXIES
def test_duplicated_rows(name):
    case, labels = CASES[name], np.array([0, 0, 1, 1, 1, 1], "int32")
    y_pred = np.repeat(case.predictions(labels[:3]), 2, axis=0)
    value, gradient = value_and_gradient(
        case.make(dtype="float64"), labels, y_pred
    )
    np.testing.assert_allclose(value, case.expected(labels, y_pred), rtol=1e-9)
    np.testing.assert_allclose(gradient[0], gradient[1])
