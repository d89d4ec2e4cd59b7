"""Margin loss, its boundaries and its sampling."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses, miners
from keras_dml.ops.draws import distance_weighted_negatives
from keras_dml.ops.pairs import Pairs
from tests.conformance import roundtrip
from tests.losses import naive_pair_losses as naive

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 4))
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")


def test_roundtrip():
    roundtrip(losses.Margin(margin=0.3, nu=0.1, sampling="all", name="other"))
    roundtrip(layers.ClassBoundaries(4, initial=1.0))


def sample(distance, labels, step=0, dim=8, **kwargs):
    positive, negative = naive.masks(labels)
    rows = np.zeros((len(labels), dim))
    drawn = distance_weighted_negatives(
        tf.constant(distance, "float32"),
        Pairs(rows, rows, positive, negative, step=tf.constant(step)),
        **kwargs,
    )
    return np.asarray(drawn), positive, negative


def pair_distances(x):
    x = naive.unit(x)
    return np.sqrt(np.maximum(0, 2 - 2 * x @ x.T))


@pytest.mark.parametrize("dim", [4, 2048])
def test_draws_one_negative_for_each_positive(dim):
    labels = np.arange(24) // 4
    x = np.random.default_rng(1).standard_normal((24, dim))
    drawn, positive, negative = sample(pair_distances(x), labels, dim=dim)
    assert not (drawn & ~negative).any()
    distance = pair_distances(x)
    for row in range(24):
        allowed = negative[row] & (distance[row] < 1.4)
        allowed = allowed if allowed.any() else negative[row]
        assert drawn[row].sum() == min(positive[row].sum(), allowed.sum())
        assert not (drawn[row] & ~allowed).any()


@pytest.mark.slow
def test_frequencies_are_the_weights():
    """One positive, negatives at four distances, one of them too far."""
    d = np.array([0.3, 0.6, 0.8, 1.6])
    distance = np.zeros((6, 6))
    distance[0, 2:] = d
    labels = np.array([0, 0, 1, 2, 3, 4])
    near = np.maximum(d[:3], 0.5)
    weights = near ** (2 - 4) * (1 - near**2 / 4) ** (-(4 - 3) / 2)
    draws = np.stack(
        [sample(distance, labels, step, dim=4)[0][0, 2:] for step in range(600)]
    )
    assert (draws.sum(axis=1) == 1).all()
    frequency = draws.mean(axis=0)
    np.testing.assert_allclose(
        frequency, [*(weights / weights.sum()), 0], atol=0.06
    )


@pytest.mark.slow
def test_far_negatives_are_drawn_evenly_when_there_are_no_others():
    distance = np.full((5, 5), 1.9)
    labels = np.array([0, 0, 1, 2, 3])
    draws = np.stack(
        [sample(distance, labels, step)[0][0] for step in range(300)]
    )
    np.testing.assert_allclose(draws.mean(axis=0)[2:], 1 / 3, atol=0.1)


def test_the_draw_depends_on_step_and_place_alone():
    labels = np.arange(12) // 3
    distance = pair_distances(np.random.default_rng(2).standard_normal((12, 3)))
    whole, positive, negative = sample(distance, labels, step=7, dim=3)
    again, _, _ = sample(distance, labels, step=7, dim=3)
    np.testing.assert_array_equal(whole, again)
    assert (whole != sample(distance, labels, step=8, dim=3)[0]).any()
    second = distance_weighted_negatives(
        tf.constant(distance[6:], "float32"),
        Pairs(
            np.zeros((6, 3)),
            None,
            positive[6:],
            negative[6:],
            first_row=6,
            step=tf.constant(7),
        ),
    )
    np.testing.assert_array_equal(second, whole[6:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels, x",
    [
        (np.arange(8) % 4, 0 * X),
        (np.zeros(8), X),
        (np.arange(8) % 4, np.repeat(X[:1], 8, axis=0)),
        ([0], X[:1]),
        ([0, 1, 2, 3], X[:4]),
    ],
)
def test_degenerate_batches_are_finite(labels, x):
    labels = np.asarray(labels, "int32")
    layer = layers.ClassBoundaries(4)
    x = tf.Variable(x, dtype="float32")

    @tf.function(jit_compile=True)
    def step():
        with tf.GradientTape() as tape:
            value = losses.Margin()(labels, layer([x, labels]))
        return value, tape.gradient(value, x)

    layer([x, labels])
    value, gradient = step()
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def build(folder=None):
    keras.utils.set_random_seed(0)
    x = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    h = keras.layers.Dense(4, name="head")(x)
    y = layers.ClassBoundaries(4, name="boundaries")([h, label])
    model = keras.Model({"image": x, "label": label}, y)
    model.compile(keras.optimizers.SGD(0.1), losses.Margin(nu=0.01))
    return model


def batches():
    data = np.random.default_rng(1).standard_normal((32, 6)).astype("float32")
    labels = np.tile([0, 1, 2, 3], 8).astype("int32")
    return tf.data.Dataset.from_tensor_slices(
        ({"image": data, "label": labels}, labels)
    ).batch(16)


@pytest.mark.slow
def test_replicas_do_not_change_training(strategy):
    wanted = build()
    expected_loss = wanted.fit(batches(), epochs=2, verbose=0, shuffle=False)
    with strategy.scope():
        model = build()
        loss = model.fit(batches(), epochs=2, verbose=0, shuffle=False)
    assert int(model.get_layer("boundaries").step.numpy()) == 4
    np.testing.assert_allclose(
        loss.history["loss"], expected_loss.history["loss"], rtol=1e-4
    )
    for a, w in zip(model.get_weights(), wanted.get_weights(), strict=True):
        np.testing.assert_allclose(a, w, rtol=1e-3, atol=1e-5)
    learned = model.get_layer("boundaries").boundaries.numpy()
    assert (abs(learned - 1.2) > 1e-4).all()


@pytest.mark.slow
def test_a_reloaded_model_draws_as_it_would_have_drawn(tmp_path):
    model = build()
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    for trained in (model, revived):
        trained.fit(batches(), verbose=0, shuffle=False)
    for a, w in zip(revived.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, w)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: losses.Margin(sampling="hard"), "`sampling`.*'hard'"),
        (lambda: losses.Margin(nu=float("inf")), "`nu`.*finite"),
        *(
            (partial(cls, **{name: value}), f"`{name}`.*{name}={value}")
            for cls in (losses.Margin, miners.DistanceWeighted)
            for name, value in (
                ("nearest", 0.0),
                ("nearest", -1.0),
                ("nearest", 2.0),
                ("farthest", 0.0),
            )
        ),
        (lambda: losses.Margin(dtype="float16"), "half precision"),
        (lambda: layers.ClassBoundaries(0), "`num_classes`.*num_classes=0"),
    ],
)
def test_refused_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_negatives_are_drawn_among_rows_of_length_1():
    with pytest.raises(ValueError, match="`normalize` of Dist"):
        losses.Margin(normalize=False)
    losses.Margin(sampling="all", normalize=False)
    with pytest.raises(ValueError, match="`normalize` of Dist"):
        losses.Contrastive(miner="distance_weighted", normalize=False)
