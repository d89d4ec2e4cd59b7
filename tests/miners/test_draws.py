"""Draws depend on the step and on the places in the global batch."""

import math
from fractions import Fraction
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses, miners
from keras_dml.ops.draws import at_step, training_step
from keras_dml.ops.largest import largest_of_groups
from keras_dml.ops.pairs import Pairs
from tests.conformance import roundtrip
from tests.losses.naive_pair_losses import masks, unit
from tests.miners.test_laws import mined

LABELS = np.arange(24, dtype="int32") // 4
X = unit(np.random.default_rng(0).standard_normal((24, 6)))
DRAWN = {
    "distance_weighted": miners.DistanceWeighted(farthest=2.0),
    "uniform_histogram": miners.UniformHistogram(4, 2, 3),
}
EACH = pytest.mark.parametrize("name", DRAWN)


@EACH
def test_another_step_draws_other_pairs(name):
    first, again, other = (
        mined(DRAWN[name], LABELS, X, step=step)[1] for step in (7, 7, 8)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.sum() == other.sum()


@pytest.mark.slow
@EACH
def test_every_pair_is_drawn_in_time(name):
    negative = masks(LABELS)[1]
    seen = np.zeros_like(negative)
    for step in range(400):
        seen |= mined(DRAWN[name], LABELS, X, step=step)[1]
    assert seen[negative].mean() > 0.9


def test_a_histogram_is_flat():
    miner = miners.UniformHistogram(5, 3, 4)
    chosen = mined(miner, LABELS, X)
    for found, mask, most in zip(chosen, masks(LABELS), (3, 4), strict=True):
        distance = np.linalg.norm(X[:, None] - X, axis=2)
        edges = np.linspace(distance[mask].min(), distance[mask].max(), 6)
        every, kept = (
            np.histogram(distance[one], edges)[0] for one in (mask, found)
        )
        # A pair at an edge may fall to both sides of it.
        assert abs(kept - np.minimum(every, most)).max() <= 1
        assert every.max() > 3 * most


@EACH
def test_the_step_reaches_the_miner(name):
    inner = losses.Contrastive(negative_margin=-1.0, miner=DRAWN[name])
    loss = losses.AtStep(inner)
    x = X.astype("float32")

    def at(step):
        column = np.full((24, 1), step, "float32")
        return float(loss(LABELS, np.concatenate([x, column], axis=1)))

    assert at(0) == float(inner(LABELS, x))
    assert at(1) != at(0)
    pairs = inner.batch_pairs(LABELS, x)._replace(step=5)
    wanted = np.mean(inner.pair_loss(inner.mined(pairs)))
    np.testing.assert_allclose(at(5), wanted, rtol=1e-6)
    both = losses.AtStep(losses.WeightedSum([inner, losses.SupCon()]))
    assert training_step() == 0
    assert roundtrip(both).loss.losses[0].miner.draws


def test_the_step_ends_with_its_block():
    with pytest.raises(ZeroDivisionError), at_step(3):
        assert training_step() == 3
        raise ZeroDivisionError
    assert training_step() == 0


def test_refused_predictions():
    loss = losses.AtStep(losses.Contrastive())
    with pytest.raises(ValueError, match="`TrainingStep`"):
        loss(LABELS, X[:, :, None])


def model():
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    embedding = keras.layers.Dense(4)(x)
    model = keras.Model(x, layers.TrainingStep(name="step")(embedding))
    loss = losses.Contrastive(negative_margin=-1.0, miner="distance_weighted")
    model.compile(keras.optimizers.SGD(0.1), losses.AtStep(loss))
    return model


def test_a_resumed_training_draws_what_an_uninterrupted_one_draws(tmp_path):
    whole = model()
    for _ in range(2):
        whole.train_on_batch(X, LABELS)
    whole.save(tmp_path / "model.keras")
    resumed = keras.saving.load_model(tmp_path / "model.keras")
    for one in (whole, resumed):
        one.train_on_batch(X, LABELS)
        assert one.get_layer("step").step.numpy() == 3
    for a, b in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_training_counts_steps():
    layer = layers.TrainingStep()
    for training, column in ((True, 0), (False, 1), (True, 1), (False, 2)):
        y = layer(np.ones((2, 3)), training=training)
        np.testing.assert_array_equal(y, [[1, 1, 1, column]] * 2)
    assert layer.compute_output_shape((None, 3)) == (None, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_the_largest_are_those_of_sorting(dtype, share):
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((40, 50)).astype(dtype) * 1e3
    group = rng.integers(0, 3, (40, 50)).astype("int32")
    most = np.array(
        [int(np.ceil(share * (group == one).sum())) for one in range(2)]
    ).astype("int32")
    wanted = partial(tf.minimum, most)
    found = np.asarray(largest_of_groups(scores, group, 2, wanted))
    compiled = tf.function(largest_of_groups, jit_compile=True)
    np.testing.assert_array_equal(compiled(scores, group, 2, wanted), found)
    for number in range(2):
        of = np.sort(scores[group == number])[::-1]
        last = of[most[number] - 1]
        chosen, those = found & (group == number), scores[group == number]
        assert (chosen[group == number] >= (those >= last)).all()
        rounding = 4 * np.finfo(dtype).eps + 2.0**-29
        assert scores[chosen].min() >= last - rounding * np.ptp(scores)
    assert not found[group == 2].any()


def test_the_largest_of_equal_and_of_no_scores():
    same = np.ones((2, 3))
    group = np.array([[0, 0, 0], [0, 0, 2]], "int32")
    found = np.asarray(largest_of_groups(same, group, 2, lambda n: n // 3))
    np.testing.assert_array_equal(found, group == 0)
    none = largest_of_groups(same, 0 * group + 2, 2, lambda n: n)
    assert not np.any(none)


@pytest.mark.parametrize("share", [0.1, 0.3, 1 / 3, 0.5, 0.999, 1.0])
def test_a_share_is_not_rounded_up(share):
    """In float32 0.3 * 650 is more than 195."""
    distance = np.random.default_rng(2).permutation(650).astype("float32")
    nothing = np.zeros((1, 650), bool)
    chosen, _ = miners.hardest_pairs(distance[None], ~nothing, nothing, share)
    expected = math.ceil(Fraction(share).limit_denominator(1000) * 650)
    assert np.asarray(chosen).sum() == expected


def test_memory_draws_by_its_own_step():
    loss = losses.Contrastive(negative_margin=-1.0, miner="distance_weighted")
    layer = layers.CrossBatchMemory(loss, size=24, warm_up_steps=0)
    x = X.astype("float32")
    columns = []
    for _ in range(3):
        columns.append(np.asarray(layer([x, LABELS], training=True))[:, -1])
    same = LABELS[:, None] == LABELS
    for step in (1, 2):
        pairs = Pairs(x, x + 0.0, same, ~same, step=step)
        wanted = loss.pair_loss(loss.mined(pairs))
        np.testing.assert_allclose(columns[step], wanted, rtol=1e-4)
    assert (columns[1] != columns[2]).any()
