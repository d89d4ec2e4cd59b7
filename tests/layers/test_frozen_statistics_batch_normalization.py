import keras
import numpy as np

from keras_dml.layers import FrozenStatisticsBatchNormalization
from tests.conformance import check_layer, roundtrip

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((32, 4)) * 3 + 5).astype("float32")


def build(layer):
    x = keras.Input((4,))
    model = keras.Model(x, layer(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def test_layer(policy, tmp_path):
    check_layer(FrozenStatisticsBatchNormalization, {}, X, (32, 4), tmp_path)


def test_statistics_stay_while_gamma_and_beta_are_trained():
    model = build(FrozenStatisticsBatchNormalization())
    before = model.get_weights()
    model.fit(X, np.zeros_like(X), epochs=2, verbose=0)
    gamma, beta, mean, variance = (
        not np.array_equal(a, b)
        for a, b in zip(before, model.get_weights(), strict=True)
    )
    assert gamma and beta and not mean and not variance


def test_a_plain_layer_would_move_its_statistics():
    model = build(keras.layers.BatchNormalization())
    before = model.get_weights()
    model.fit(X, np.zeros_like(X), verbose=0)
    assert not np.array_equal(before[2], model.get_weights()[2])


def test_loads_the_weights_of_a_plain_layer():
    plain = build(keras.layers.BatchNormalization())
    plain.fit(X, np.zeros_like(X), verbose=0)
    frozen = build(FrozenStatisticsBatchNormalization())
    frozen.set_weights(plain.get_weights())
    expected = plain(X, training=False)
    np.testing.assert_array_equal(frozen(X, training=True), expected)


def test_frozen_as_a_layer_it_trains_nothing():
    layer = FrozenStatisticsBatchNormalization(trainable=False)
    layer.build((None, 4))
    assert layer.trainable_variables == []


def test_config_is_that_of_batch_normalization():
    layer = FrozenStatisticsBatchNormalization(epsilon=1e-5, scale=False)
    assert roundtrip(layer).epsilon == 1e-5
