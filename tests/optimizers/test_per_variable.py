import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.optimizers import PerVariable, RowLazyAdam, TorchAdam
from keras_dml.optimizers.learning_rate import rate_of
from tests.conformance import roundtrip

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((16, 6)).astype("float32")
LABELS = (np.arange(16) % 4).astype("int32")


def build_model():
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    h = keras.layers.Dense(6, name="backbone")(x)
    h = layers.EmbeddingHead(5, name="head")(h)
    h = layers.Proxies(4, name="proxies")(h)
    return keras.Model(x, layers.ScaledLogits(16.0, name="logits")(h))


def compile_model(optimizer, **arguments):
    model = build_model()
    model.compile(optimizer, losses.NormalizedSoftmax(), **arguments)
    return model


def fit(model, epochs=2):
    history = model.fit(
        tf.data.Dataset.from_tensor_slices((DATA, LABELS)).batch(8),
        epochs=epochs,
        verbose=0,
        shuffle=False,
    )
    return history.history["loss"]


def per_variable(make=keras.optimizers.Adam):
    return PerVariable(
        make(0.01, name="backbone"),
        {
            "head/.*": make(0.01, name="head"),
            "(proxies|logits)/.*": make(0.01, name="proxies"),
        },
    )


def test_a_rate_of_zero_keeps_the_ratios():
    optimizer = PerVariable(
        keras.optimizers.SGD(0.1), {"head/.*": keras.optimizers.SGD(0.2)}
    )
    optimizer.learning_rate = 0.0
    assert [rate_of(one) for one in optimizer.optimizers] == [0.0, 0.0]
    optimizer.learning_rate = 0.4
    found = [rate_of(one) for one in optimizer.optimizers]
    assert found == pytest.approx([0.4, 0.2])


def test_rates_that_begin_at_zero_are_set_alike():
    optimizer = PerVariable(
        keras.optimizers.SGD(0.0), {"head/.*": keras.optimizers.SGD(0.0)}
    )
    optimizer.learning_rate = 0.4
    found = [rate_of(one) for one in optimizer.optimizers]
    assert found == pytest.approx([0.4, 0.4])


def test_roundtrip():
    first = per_variable(TorchAdam)
    second = roundtrip(first)
    assert [type(o) for o in second.optimizers] == [TorchAdam] * 3
    assert [o.name for o in second.optimizers] == [
        o.name for o in first.optimizers
    ]
    assert list(second.rules) == ["head/.*", "(proxies|logits)/.*"]
    assert second.default.name == "backbone"


def test_schedules_survive_the_roundtrip():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 100)
    optimizer = PerVariable(
        keras.optimizers.SGD(schedule), {"a": keras.optimizers.SGD(0.1)}
    )
    revived = roundtrip(optimizer).default.get_config()["learning_rate"]
    assert revived["config"] == schedule.get_config()


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_equal_optimizers_train_exactly_as_one(policy, jit_compile):
    one = compile_model(keras.optimizers.Adam(0.01), jit_compile=jit_compile)
    several = compile_model(per_variable(), jit_compile=jit_compile)
    assert fit(several) == fit(one)
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_equal_optimizers_train_exactly_as_one_on_two_replicas(strategy):
    with strategy.scope():
        one = compile_model(keras.optimizers.Adam(0.01))
        several = compile_model(per_variable())
    assert fit(several) == fit(one)
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_group_moves_by_its_own_rate(policy):
    optimizer = PerVariable(
        keras.optimizers.SGD(0.0, name="backbone"),
        {
            "head/.*": keras.optimizers.SGD(0.0, name="head"),
            "proxies/.*": keras.optimizers.SGD(0.5, name="proxies"),
        },
    )
    model = compile_model(optimizer)
    before = {v.path: np.array(v) for v in model.trainable_variables}
    fit(model, epochs=1)
    moved = {
        v.path
        for v in model.trainable_variables
        if not np.array_equal(np.array(v), before[v.path])
    }
    assert moved == {"proxies/proxies"}


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_rate_for_callbacks_that_know_no_groups(replicas, request):
    scope = contextlib.nullcontext()
    if replicas == 2:
        scope = request.getfixturevalue("strategy").scope()
    with scope:
        optimizer = PerVariable(
            keras.optimizers.SGD(0.5), {"a": keras.optimizers.SGD(2.0)}
        )
    assert rate_of(optimizer) == 2.0
    optimizer.learning_rate = 1.0
    assert [rate_of(one) for one in optimizer.optimizers] == [1.0, 0.25]


def test_gradients_are_clipped_by_group():
    variables = [keras.Variable(np.zeros(2), name=n) for n in "ab"]
    optimizer = PerVariable(
        keras.optimizers.SGD(1.0),
        {"a": keras.optimizers.SGD(1.0, clipvalue=1.0)},
    )
    optimizer.apply([tf.constant([3.0, -0.5])] * 2, variables)
    np.testing.assert_array_equal(variables[0].numpy(), [-1.0, 0.5])
    np.testing.assert_array_equal(variables[1].numpy(), [-3.0, 0.5])


@pytest.mark.parametrize(
    "limit", [{"clipvalue": 1.0}, {"clipnorm": 1.0}, {"global_clipnorm": 1.0}]
)
def test_replicas_clip_the_sum_of_their_gradients(limit, strategy):
    """As one device, which has the gradient of all images."""
    with strategy.scope():
        weight = keras.Variable(np.zeros(2), name="weight")
        optimizer = PerVariable(keras.optimizers.SGD(1.0, **limit), {})
        optimizer.build([weight])
    parts = np.array([[3.0, 1.5], [-2.0, 0.5]], "float32")

    @tf.function
    def step():
        def replica():
            index = tf.distribute.get_replica_context()
            index = index.replica_id_in_sync_group
            optimizer.apply([tf.gather(parts, index)], [weight])

        strategy.run(replica)

    step()
    alone = keras.Variable(np.zeros(2), name="weight")
    plain = keras.optimizers.SGD(1.0, **limit)
    plain.apply([tf.constant(parts.sum(0))], [alone])
    np.testing.assert_allclose(weight.numpy(), alone.numpy(), rtol=1e-6)
    assert weight.numpy().any()


@pytest.mark.parametrize("make", [RowLazyAdam, TorchAdam])
@pytest.mark.parametrize("limit", [{"clipvalue": 1.0}, {"clipnorm": 1.0}])
def test_replicas_clip_the_sum_of_sparse_gradients(make, limit, strategy):
    """As `SampledProxies` makes them: every replica has the same rows."""
    with strategy.scope():
        table = keras.Variable(np.zeros((4, 2)), name="table")
        optimizer = PerVariable(make(0.1, epsilon=1.0, **limit), {})
        optimizer.build([table])
    parts = np.array([[[3.0, 1.5]] * 2, [[-2.0, 0.5]] * 2], "float32")
    rows, shape = tf.constant([2, 0]), tf.constant([4, 2])

    @tf.function
    def step():
        def replica():
            context = tf.distribute.get_replica_context()
            part = tf.gather(parts, context.replica_id_in_sync_group)
            optimizer.apply([tf.IndexedSlices(part, rows, shape)], [table])

        strategy.run(replica)

    alone = keras.Variable(np.zeros((4, 2)), name="table")
    plain = make(0.1, epsilon=1.0, **limit)
    whole = tf.IndexedSlices(tf.constant(parts.sum(0)), rows, shape)
    for _ in range(2):
        step()
        plain.apply([whole], [alone])
    np.testing.assert_allclose(table.numpy(), alone.numpy(), rtol=1e-5)
    assert table.numpy()[[0, 2]].any()


def test_one_optimizer_of_two_rules_keeps_its_state():
    adam = keras.optimizers.Adam(0.1)
    first = PerVariable(keras.optimizers.SGD(0.1), {"a": adam, "b": adam})
    variables = [keras.Variable(np.ones(2), name=one) for one in "abc"]
    first.build(variables)
    first.apply([tf.ones(2)] * 3, variables)
    second = roundtrip(first)
    second.build(variables)
    assert len(second.optimizers) == 2
    second.set_weights(first.variables)
    for value, expected in zip(second.variables, first.variables, strict=True):
        np.testing.assert_array_equal(value, expected)
    shared = PerVariable(adam, {"a": adam})
    assert len(roundtrip(shared).optimizers) == 1


def test_weights_are_set_where_no_variable_is_left_for_the_default():
    optimizer = PerVariable(
        keras.optimizers.SGD(0.1), {".*": keras.optimizers.Adam(0.1)}
    )
    optimizer.build([keras.Variable(np.ones(2), name="a")])
    values = [np.array(one) + 1 for one in optimizer.variables]
    optimizer.set_weights(values)
    for variable, value in zip(optimizer.variables, values, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_a_group_without_gradients_is_left_alone():
    variables = [keras.Variable(np.ones(2), name=n) for n in "ab"]
    optimizer = PerVariable(
        keras.optimizers.Adam(0.1), {"a": keras.optimizers.Adam(0.1)}
    )
    for _ in range(2):
        optimizer.apply([None, tf.ones(2)], variables)
    np.testing.assert_array_equal(variables[0].numpy(), [1.0, 1.0])
    assert (variables[1].numpy() < 1).all()
    assert int(optimizer.rules["a"].iterations) == 0
    assert int(optimizer.default.iterations) == 2
    assert int(optimizer.iterations) == 2


def test_no_gradient_at_all_is_an_error():
    optimizer = PerVariable(keras.optimizers.SGD(), {})
    with pytest.raises(ValueError, match=r"No variable got.*\['a'\]"):
        optimizer.apply([None], [keras.Variable(np.ones(2), name="a")])


@pytest.mark.slow
def test_a_resumed_training_goes_on_exactly(tmp_path, policy):
    model = compile_model(per_variable(TorchAdam))
    fit(model)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert fit(model) == fit(revived)
    for a, b in zip(model.get_weights(), revived.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_rule_without_variables_is_refused():
    optimizer = PerVariable(
        keras.optimizers.SGD(), {"proxy/.*": keras.optimizers.SGD()}
    )
    with pytest.raises(ValueError, match=r"'proxy/.*' matches no trainable"):
        optimizer.build([keras.Variable(np.ones(2), name="proxies")])


def test_two_rules_on_one_variable_are_refused():
    optimizer = PerVariable(
        keras.optimizers.SGD(),
        {"prox.*": keras.optimizers.SGD(), "proxies": keras.optimizers.SGD()},
    )
    with pytest.raises(ValueError, match=r"Only one rule.*'proxies'"):
        optimizer.build([keras.Variable(np.ones(2), name="proxies")])


def test_a_variable_that_was_frozen_at_first_needs_a_new_optimizer():
    optimizer = PerVariable(keras.optimizers.SGD(), {})
    optimizer.build([keras.Variable(np.ones(2), name="a")])
    with pytest.raises(ValueError, match="'b' was not trainable.*Compile"):
        optimizer.apply([tf.ones(2)], [keras.Variable(np.ones(2), name="b")])


@pytest.mark.parametrize("default", ["sgd", None])
def test_only_optimizers_are_taken(default):
    with pytest.raises(TypeError, match=f"`default` must.*{default!r}"):
        PerVariable(default, {})


def test_optimizers_that_hold_others_are_refused():
    holder = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    with pytest.raises(TypeError, match=r"`rules\['a'\]` must.*holds no other"):
        PerVariable(keras.optimizers.SGD(), {"a": holder})


def test_a_rule_must_be_a_regular_expression():
    with pytest.raises(ValueError, match=r"'head/\*\*' is not a regular"):
        PerVariable(keras.optimizers.SGD(), {"head/**": keras.optimizers.SGD()})
