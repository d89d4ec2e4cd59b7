import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.optimizers import PerVariable, RowLazyAdam, group_table
from keras_dml.optimizers import row_lazy_adam as module
from tests.conformance import roundtrip

RNG = np.random.default_rng(0)
ROWS, DIM = 6, 3
TABLE = RNG.standard_normal((ROWS, DIM)).astype("float32")
GRADIENTS = RNG.standard_normal((20, ROWS, DIM)).astype("float32")


def slices(rows, values):
    return tf.IndexedSlices(
        tf.constant(values), tf.constant(rows), tf.constant((ROWS, DIM))
    )


def all_rows(gradient):
    return slices(np.arange(ROWS), gradient)


def twice(gradient):
    """Every row in two parts, as two replicas give them."""
    rows = np.tile(np.arange(ROWS), 2)
    return slices(rows, np.concatenate([0.25 * gradient, 0.75 * gradient]))


def run(optimizer, gradients, compiled=True):
    variable = keras.Variable(TABLE, name="table")
    optimizer.build([variable])
    apply = lambda gradient: optimizer.apply([gradient])  # noqa: E731
    if compiled:
        apply = tf.function(apply)
    for gradient in gradients:
        apply(gradient)
    return variable.numpy()


@pytest.fixture(params=[4, 2**18], ids=["small_blocks", "one_block"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", request.param)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", [tf.constant, all_rows, twice])
def test_is_adam_when_every_row_has_a_gradient(kind, compiled, blocks):
    wanted = run(keras.optimizers.Adam(0.1), map(tf.constant, GRADIENTS))
    found = run(RowLazyAdam(0.1), map(kind, GRADIENTS), compiled)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("kind", [tf.constant, all_rows, twice])
@pytest.mark.parametrize(
    "options", [{"clipvalue": 0.2}, {"clipnorm": 0.3}, {"weight_decay": 0.1}]
)
def test_options_are_those_of_adam(kind, options):
    wanted = run(
        keras.optimizers.Adam(0.1, **options), map(tf.constant, GRADIENTS)
    )
    found = run(RowLazyAdam(0.1, **options), map(kind, GRADIENTS))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_row_goes_the_way_of_adam_through_its_own_steps(blocks):
    """Sparse or dense, whatever the steps in between."""
    seen = RNG.uniform(size=(len(GRADIENTS), ROWS)) < 0.4
    seen[:, 0], seen[:, 1] = True, False
    sparse = [
        slices(np.flatnonzero(mask), gradient[mask])
        for mask, gradient in zip(seen, GRADIENTS, strict=True)
    ]
    dense = [
        tf.constant(g * m[:, None])
        for m, g in zip(seen, GRADIENTS, strict=True)
    ]
    options = {"learning_rate": 0.1, "weight_decay": 0.05}
    wanted = []
    for row in range(ROWS):
        variable = keras.Variable(TABLE[row])
        adam = keras.optimizers.Adam(**options)
        adam.build([variable])
        for gradient in GRADIENTS[seen[:, row], row]:
            adam.apply([tf.constant(gradient)])
        wanted.append(variable.numpy())
    np.testing.assert_array_equal(wanted[1], TABLE[1])
    for gradients in (sparse, dense):
        # Outside of a function, whose shapes would change with every step.
        found = run(RowLazyAdam(**options), gradients, compiled=False)
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        np.testing.assert_array_equal(found[1], TABLE[1])


def test_a_common_count_of_steps_would_move_a_late_row_too_far():
    """The figure of the docstring: 0.1 / sqrt(0.001 / (1 - 0.999**1000))."""
    optimizer = RowLazyAdam(1.0)
    variable = keras.Variable(TABLE)
    optimizer.build([variable])
    optimizer.iterations.assign(999)
    optimizer.apply([slices([2], np.ones((1, DIM), "float32"))])
    moved = TABLE - variable.numpy()
    np.testing.assert_allclose(moved[2], 1.0, rtol=1e-4)
    lazy_adam = 0.1 / np.sqrt(0.001 / (1 - 0.999**1000))
    np.testing.assert_allclose(lazy_adam, 2.5, atol=0.02)


def test_a_sparse_step_makes_nothing_as_large_as_the_table():
    rows, dim = 50_000, 16
    variable = keras.Variable(np.zeros((rows, dim), "float32"))
    optimizer = RowLazyAdam(0.1, weight_decay=0.1, clipvalue=1.0)
    optimizer.build([variable])
    step = tf.function(
        lambda indices, values: optimizer.apply(
            [tf.IndexedSlices(values, indices, tf.constant((rows, dim)))]
        )
    )
    indices = tf.range(0, rows, 100)
    values = tf.ones((500, dim))
    step(indices, values)
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    step(indices, values)
    peak = tf.config.experimental.get_memory_info("CPU:0")["peak"]
    table = 4 * rows * dim
    assert peak - before < 0.25 * table
    assert np.count_nonzero(variable.numpy().any(axis=1)) == 500


def test_scalars_and_vectors_are_variables_too():
    for shape in ((), (4,)):
        variable, twin = (keras.Variable(np.ones(shape)) for _ in range(2))
        ours, adam = RowLazyAdam(0.1), keras.optimizers.Adam(0.1)
        for gradient in np.full((3, *shape), 0.5, "float32"):
            ours.apply([tf.constant(gradient)], [variable])
            adam.apply([tf.constant(gradient)], [twin])
        np.testing.assert_allclose(variable, twin, atol=1e-6)


def test_decay_can_leave_variables_out():
    optimizer = RowLazyAdam(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["table"])
    found = run(optimizer, map(all_rows, GRADIENTS))
    wanted = run(RowLazyAdam(0.1), map(all_rows, GRADIENTS))
    np.testing.assert_array_equal(found, wanted)


def test_roundtrip():
    optimizer = RowLazyAdam(0.1, 0.8, 0.99, 1e-3, 0.1, clipvalue=2.0)
    roundtrip(optimizer)
    roundtrip(PerVariable(keras.optimizers.Adam(), {"a": RowLazyAdam()}))


def test_the_table_of_groups_tells_its_rule():
    variable = keras.Variable(TABLE, name="table")
    optimizer = RowLazyAdam(0.1, weight_decay=0.5, clipvalue=2.0)
    (row,) = group_table(optimizer, [variable])
    assert row.optimizer == "RowLazyAdam"
    assert (row.clip, row.decay) == ("value 2", "decoupled 0.5")


@pytest.mark.parametrize(
    "arguments", [{"beta_1": 1.0}, {"beta_2": -0.1}, {"epsilon": -1}]
)
def test_arguments_are_checked(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}` must.*Received: {name}="):
        RowLazyAdam(**arguments)
