import keras
import numpy as np
import pytest

from keras_dml.initializers import (
    UniformFanIn,
    get_kernel_initializer,
    get_proxy_initializer,
)
from keras_dml.layers import EmbeddingHead
from tests.conformance import roundtrip, to_numpy


def values(initializer, shape):
    return to_numpy(initializer(shape, dtype="float32"))


@pytest.mark.parametrize(
    "name, deviation",
    [
        ("uniform_fan_in", 100**-0.5 / 3**0.5),
        ("he_fan_out", (2 / 400) ** 0.5),
        ("scaled_fan_in", (2 / 100) ** 0.5),
    ],
)
def test_deviation_of_kernels(name, deviation):
    kernel = values(get_kernel_initializer(name), (100, 400))
    np.testing.assert_allclose(kernel.std(), deviation, rtol=0.02)
    assert abs(kernel.mean()) < 0.02 * deviation


@pytest.mark.parametrize(
    "name, deviation",
    [
        ("he_fan_out", (2 / 100) ** 0.5),
        ("normal_eighth", 1 / 8),
        ("scaled_fan_in", 400**-0.5),
        ("uniform_fan_in", 100**-0.5 / 3**0.5),
        ("normal", 1.0),
        ("normal_hundredth", 1 / 100),
    ],
)
def test_deviation_of_proxies(name, deviation):
    proxies = values(get_proxy_initializer(name), (100, 400))
    np.testing.assert_allclose(proxies.std(), deviation, rtol=0.02)


def test_uniform_fan_in_stays_within_its_bounds():
    kernel = values(UniformFanIn(), (64, 200))
    assert 0.124 < np.abs(kernel).max() <= 0.125
    bias = values(UniformFanIn(fan_in=64), (5000,))
    assert 0.124 < np.abs(bias).max() <= 0.125


def test_uniform_fan_in_follows_its_seed_and_that_of_keras():
    first, again = (values(UniformFanIn(4, seed=1), (9,)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    drawn = []
    for _ in range(2):
        keras.utils.set_random_seed(3)
        drawn.append([values(UniformFanIn(4), (9,)) for _ in range(2)])
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0][0] != drawn[0][1]).all()


def test_uniform_fan_in_roundtrip():
    roundtrip(UniformFanIn(fan_in=3))


def test_a_copy_of_uniform_fan_in_draws_anew_unless_it_has_a_seed():
    for seed, equal in ((None, False), (1, True)):
        initializer = UniformFanIn(4, seed=seed)
        copy = roundtrip(initializer)
        drawn = [values(one, (9,)) for one in (initializer, copy)]
        assert np.array_equal(*drawn) is equal


def test_the_clone_of_a_head_starts_elsewhere():
    x = keras.Input((6,))
    model = keras.Model(x, EmbeddingHead(4)(x))
    clone = keras.models.clone_model(model)
    weights = zip(model.get_weights(), clone.get_weights(), strict=True)
    assert all((one != other).all() for one, other in weights)


@pytest.mark.parametrize("fan_in", [0, -3, 2.5, "4"])
def test_uniform_fan_in_needs_a_number_of_inputs(fan_in):
    with pytest.raises(ValueError, match="`fan_in` must be a positive integer"):
        UniformFanIn(fan_in)


def test_uniform_fan_in_needs_the_fan_in_of_a_bias():
    with pytest.raises(ValueError, match=r"`fan_in` must.*shape=\(5,\)"):
        UniformFanIn()((5,))


def test_initializers_of_keras_are_allowed():
    initializer = get_kernel_initializer("glorot_uniform")
    assert isinstance(initializer, keras.initializers.GlorotUniform)
    zeros = keras.initializers.Zeros()
    assert get_proxy_initializer(zeros) is zeros


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="kernel.*'he_fanout'.*'he_fan_out'"):
        get_kernel_initializer("he_fanout")
    with pytest.raises(ValueError, match="'normal_eight'.*'normal_eighth'"):
        get_proxy_initializer("normal_eight")
    with pytest.raises(ValueError, match="is needed. Received: None"):
        get_proxy_initializer(None)
