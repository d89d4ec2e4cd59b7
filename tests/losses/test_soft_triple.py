import keras
import numpy as np
import tensorflow as tf

from keras_dml import layers, losses, regularizers

RNG = np.random.default_rng(0)
LABELS = np.array([0, 2, 1, 1], "int32")


def test_one_center_is_cos_face():
    cosines = RNG.uniform(-1, 1, (4, 3)).astype("float32")
    loss = losses.SoftTriple(margin=0.1, scale=9.0)
    expected = losses.CosFace(margin=0.1, scale=9.0)(LABELS, cosines)
    np.testing.assert_allclose(loss(LABELS, cosines), expected, rtol=1e-6)
    np.testing.assert_allclose(
        loss(LABELS, cosines[:, :, None]), expected, rtol=1e-6
    )


def test_gamma_goes_from_the_mean_to_the_nearest_center():
    cosines = RNG.uniform(-1, 1, (4, 3, 5)).astype("float32")
    for gamma, merged in ((1e-6, cosines.mean(-1)), (1e6, cosines.max(-1))):
        np.testing.assert_allclose(
            losses.SoftTriple(gamma=gamma)(LABELS, cosines),
            losses.CosFace(margin=0.01, scale=20.0)(LABELS, merged),
            rtol=1e-4,
        )


def test_a_model_trains_both_terms():
    """The loss that `fit` reports is that of the paper."""
    x = keras.Input((6,))
    proxies = layers.Proxies(
        3,
        centers=4,
        regularizer=regularizers.CenterDistance(0.2),
        name="proxies",
    )
    model = keras.Model(x, proxies(x))
    model.compile("sgd", losses.SoftTriple())
    rows = RNG.standard_normal((4, 6)).astype("float32")
    expected = losses.SoftTriple()(LABELS, proxies(rows))
    expected += regularizers.CenterDistance(0.2)(proxies.proxies)
    np.testing.assert_allclose(
        model.evaluate(rows, LABELS, verbose=0), expected, rtol=1e-5
    )


def train():
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    proxies = layers.Proxies(
        3, centers=4, regularizer=regularizers.CenterDistance(5.0)
    )
    model = keras.Model(x, proxies(x))
    model.compile(keras.optimizers.SGD(0.1), losses.SoftTriple())
    rows = np.random.default_rng(1).standard_normal((24, 6))
    batches = tf.data.Dataset.from_tensor_slices(
        (rows.astype("float32"), np.tile(LABELS, 6))
    ).batch(8)
    model.fit(batches, verbose=0, shuffle=False)
    return model.get_weights()


def test_replicas_count_the_regularizer_once(strategy):
    expected = train()
    with strategy.scope():
        actual = train()
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-6)
