"""The losses on two views of each image: what their papers say of them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from keras_dml.layers import Predictor
from tests.losses.steps import value_and_gradient

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.standard_normal((2, 7, 4))
IDS = np.tile(np.arange(7), 2)
VIEWS = np.concatenate([FIRST, SECOND])
OF_VIEWS = [losses.VICReg, losses.BarlowTwins]


@pytest.mark.parametrize("cls", OF_VIEWS)
def test_views_meet_by_their_id_wherever_they_are(cls):
    """In pairs, in halves; with rows of one view between them."""
    loss = cls(dtype="float64")
    wanted = loss(IDS, VIEWS)
    by_pairs = np.stack([FIRST, SECOND], axis=1).reshape(14, 4)
    np.testing.assert_allclose(loss(np.arange(14) // 2, by_pairs), wanted)
    more = np.concatenate([VIEWS[:7], RNG.standard_normal((1, 4)), VIEWS[7:]])
    np.testing.assert_allclose(loss(np.insert(IDS, 7, 99), more), wanted)


@pytest.mark.parametrize(
    "cls, function",
    [
        (losses.VICReg, losses.vicreg_loss),
        (losses.BarlowTwins, losses.barlow_twins_loss),
    ],
)
def test_the_functions_take_the_views_apart(cls, function):
    wanted = cls(dtype="float64")(IDS, VIEWS)
    np.testing.assert_allclose(function(FIRST, SECOND), wanted)
    chosen = np.arange(7) < 5
    np.testing.assert_allclose(
        function(FIRST, SECOND, chosen), function(FIRST[:5], SECOND[:5])
    )


def test_equal_views_of_variance_one_without_covariance_cost_vicreg_nothing():
    x = 2.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    np.testing.assert_allclose(losses.vicreg_loss(x, x), 0.0, atol=1e-12)
    # A single point costs the variance alone.
    same = np.ones_like(x)
    np.testing.assert_allclose(losses.vicreg_loss(same, same), 25 * 0.99)


def test_barlow_twins_sees_neither_scale_nor_place_nor_sign_of_both():
    function, plain = losses.barlow_twins_loss, (FIRST, SECOND)
    wanted = function(*plain, epsilon=1e-12)
    moved = (3.0 * FIRST - 1.0, 5.0 * SECOND + 2.0)
    np.testing.assert_allclose(function(*moved, epsilon=1e-12), wanted)
    np.testing.assert_allclose(function(-FIRST, -SECOND, epsilon=1e-12), wanted)
    assert function(FIRST, -SECOND, epsilon=1e-12) != wanted


def test_simsiam_is_symmetric_and_moves_the_predictions_alone():
    half = np.stack([VIEWS, VIEWS[::-1]], axis=1).reshape(14, 8)
    value, gradient = value_and_gradient(
        losses.SimSiam(dtype="float64"), IDS, half
    )
    unit = half.reshape(14, 2, 4)
    unit = unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    predicted, rows = unit[:, 0], unit[:, 1]
    other = np.roll(rows, 7, axis=0)
    forth, back = np.split(-np.sum(predicted * other, axis=1), 2)
    np.testing.assert_allclose(value, forth.mean() / 2 + back.mean() / 2)
    assert np.any(gradient[:, :4])
    assert not np.any(gradient[:, 4:])


def test_simsiam_trains_predictor_and_embedding():
    predictor = Predictor(hidden=6)
    x = tf.Variable(VIEWS, dtype="float32")
    with tf.GradientTape() as tape:
        loss = losses.SimSiam()(IDS, predictor(x))
    moved = tape.gradient(
        loss, [x, *(w.value for w in predictor.trainable_weights)]
    )
    assert all(np.any(tf.convert_to_tensor(one)) for one in moved)


def test_simsiam_refuses_what_no_predictor_gives():
    with pytest.raises(ValueError, match=r"output of `Predictor`.*\(14, 3\)"):
        losses.SimSiam()(IDS, VIEWS[:, :3])
