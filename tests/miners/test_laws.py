"""What every miner promises, over the one table of `cases.py`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses, miners
from keras_dml.arguments import arguments_of
from keras_dml.ops.pairs import Pairs
from tests.conformance import roundtrip
from tests.losses.naive_pair_losses import masks, unit
from tests.losses.steps import assert_finite, value_and_gradient
from tests.miners.cases import BATCHES, BY_PLACE, CASES, LABELS, rows

EACH = pytest.mark.parametrize("name", CASES)
# Two cases of one miner differ in arguments, which compile and save alike.
ONCE = pytest.mark.parametrize(
    "name", {case.key: name for name, case in CASES.items()}.values()
)


def mined(miner, labels, x, **fields):
    x = unit(np.asarray(x))
    pairs = Pairs(x, x, *masks(labels), **fields)
    return [np.asarray(mask) for mask in miner(pairs).masks]


def test_every_miner_is_in_the_table():
    public = {
        value
        for value in vars(miners).values()
        if isinstance(value, type) and issubclass(value, miners.Miner)
    }
    assert public - {miners.Miner, miners.TripletMiner} == {
        type(case.make()) for case in CASES.values()
    }


@EACH
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("seed", range(2))
def test_against_loops(name, batch, seed):
    case, labels = CASES[name], BATCHES[batch]
    x = rows(labels, seed)
    positive, negative = masks(labels)
    expected = case.expected(positive, negative, x)
    for mask, wanted in zip(
        mined(case.make(), labels, x), expected, strict=True
    ):
        np.testing.assert_array_equal(mask, wanted)


@EACH
def test_the_loops_choose_some_pairs_and_leave_some(name):
    every = np.stack(masks(LABELS))
    found = np.stack(CASES[name].expected(*every, rows(LABELS)))
    assert found.any()
    # Two histograms of a hundred bins have places for all of so few.
    assert (every & ~found).any() or name == "uniform_histogram"


@EACH
def test_a_choice_has_no_gradient_and_the_pairs_have_theirs(name):
    """The gradient is that of the loss on fixed masks."""
    case = CASES[name]
    loss = case.loss(dtype="float64")
    x = rows(LABELS)
    _, gradient = value_and_gradient(loss, LABELS, x)

    class Fixed(miners.Miner):
        def mine(self, pairs):
            return case.expected(*masks(LABELS), x)

    if isinstance(case.make(), miners.TripletMiner):
        pytest.skip("masks do not say which triplets they are of")
    fixed = losses.Contrastive(
        form="euclidean", negative_margin=2.0, miner=Fixed(), dtype="float64"
    )
    _, wanted = value_and_gradient(fixed, LABELS, x)
    assert abs(wanted.numpy()).max() > 1e-4
    np.testing.assert_allclose(gradient, wanted, atol=1e-12)


@EACH
def test_the_order_of_the_rows_does_not_matter(name):
    case = CASES[name]
    if case.key in BY_PLACE:
        pytest.skip("places draw or are given")
    order, x = np.random.default_rng(5).permutation(len(LABELS)), rows(LABELS)
    for mask, moved in zip(
        mined(case.make(), LABELS, x),
        mined(case.make(), LABELS[order], x[order]),
        strict=True,
    ):
        np.testing.assert_array_equal(moved, mask[order][:, order])


@EACH
def test_the_names_of_the_classes_do_not_matter(name):
    loss, x = CASES[name].loss(), rows(LABELS)
    assert float(loss(33_333 * LABELS + 7, x)) == float(loss(LABELS, x))


@pytest.mark.slow
@ONCE
def test_eager_graph_and_xla_agree(name):
    loss, x = CASES[name].loss(), tf.constant(rows(LABELS), "float32")

    def run(x):
        return value_and_gradient(loss, LABELS, x)

    wanted = run(x)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for a, w in zip(compiled(x), wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-4, atol=1e-5)


@EACH
def test_half_precision_chooses_what_float32_chooses(name):
    x = rows(LABELS).astype("float16")
    loss = CASES[name].loss()
    value, gradient = value_and_gradient(loss, LABELS, x)
    assert value.dtype == "float32"
    assert_finite(gradient)
    wanted = loss(LABELS, x.astype("float32"))
    np.testing.assert_allclose(value, wanted, rtol=1e-5)


@EACH
@pytest.mark.parametrize(
    "labels, x",
    [
        (LABELS, 0 * rows(LABELS)),
        (np.full(8, 2), rows(range(8))),
        (np.arange(8), rows(range(8))),
        (np.arange(8) % 4, np.repeat(rows([0]), 8, axis=0)),
        (np.arange(8) % 4, 1e4 * rows(range(8))),
    ],
)
def test_degenerate_batches_are_finite(name, labels, x):
    labels = np.asarray(labels, "int32")
    x = x.astype("float32")
    assert_finite(*value_and_gradient(CASES[name].loss(), labels, x))


def test_equal_distances_are_all_the_hardest():
    x = np.eye(2, dtype="float32")
    for labels in ([0, 0], [0, 1]):
        labels = np.array(labels)
        plain = losses.Contrastive(negative_margin=-0.5)
        mined = losses.Contrastive(negative_margin=-0.5, miner=miners.HDC())
        assert float(mined(labels, x)) == float(plain(labels, x)) > 0


@EACH
def test_a_batch_of_one_row_is_zero(name):
    if name.startswith("given"):
        pytest.skip("its triplets are of more rows")
    x = rows([0]).astype("float32")
    assert float(CASES[name].loss()(np.array([1]), x)) == 0


@EACH
def test_config_roundtrip(name):
    miner = CASES[name].make()
    revived = roundtrip(miner)
    assert set(arguments_of(type(miner))) == set(miner.get_config())
    assert repr(revived) == repr(miner)
    loss = roundtrip(CASES[name].loss())
    assert repr(loss.miner) == repr(miner)
    x = rows(LABELS)
    assert float(loss(LABELS, x)) == float(CASES[name].loss()(LABELS, x))


@ONCE
def test_a_saved_model_has_its_miner(name, tmp_path):
    keras.utils.set_random_seed(0)
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(3)(x))
    model.compile("sgd", CASES[name].loss())
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert repr(revived.loss.miner) == repr(CASES[name].make())
    for one in (model, revived):
        one.train_on_batch(rows(LABELS).astype("float32"), LABELS)
    for a, b in zip(model.get_weights(), revived.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@EACH
def test_rows_of_a_memory_are_mined(name):
    """A memory that holds the batch of before is a batch of columns."""
    case = CASES[name]
    loss = case.loss()
    if case.key == "given":
        with pytest.raises(ValueError, match="`loss`.*miner=Given"):
            layers.CrossBatchMemory(loss, size=10)
        return
    layer = layers.CrossBatchMemory(loss, size=len(LABELS), warm_up_steps=0)
    before = unit(rows(LABELS, 1)).astype("float32")
    x = rows(LABELS).astype("float32")
    layer([before, LABELS], training=True)
    values = layer([x, LABELS], training=True)[:, -1]
    same = LABELS[:, None] == LABELS
    pairs = Pairs(unit(x), before, same, ~same, step=1)
    wanted = loss.pair_loss(loss.mined(pairs))
    np.testing.assert_allclose(values, wanted, rtol=1e-4)
    assert np.any(values)


@pytest.mark.slow
@ONCE
def test_replicas_choose_what_one_device_chooses(name, strategy):
    case = CASES[name]
    labels = np.tile(np.array([0, 1, 1, 0, 0, 1], "int32"), 2)
    x = rows(labels).astype("float32")
    expected = value_and_gradient(case.loss(), labels, x)

    @tf.function
    def step(x, labels):
        loss = case.loss(reduction="none")
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(loss(labels, x)) / 12
        return value, tape.gradient(value, x)

    data = tf.data.Dataset.from_tensor_slices((x, labels)).batch(12)
    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    value, gradient = strategy.run(step, args=batch)
    value = sum(strategy.experimental_local_results(value))
    gradient = np.concatenate(strategy.experimental_local_results(gradient))
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-6)


@EACH
def test_numbers_are_checked(name):
    case = CASES[name]
    cls = type(case.make())
    for key, value in case.make().get_config().items():
        if type(value) in (float, int):
            for wrong in (float("nan"), "1", True, None):
                with pytest.raises(
                    ValueError, match=f"`{key}`.*Received: {key}"
                ):
                    cls(**{**case.arguments, key: wrong})
        elif isinstance(value, str):
            with pytest.raises(ValueError, match=f"`{key}`.*'other'"):
                cls(**{**case.arguments, key: "other"})
