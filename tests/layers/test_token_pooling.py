import keras
import numpy as np
import pytest

from keras_dml.layers import GlobalKMaxPooling2D, TokenPooling, pool_tokens
from keras_dml.layers.token_pooling import MODES
from tests.conformance import check_layer, roundtrip, to_numpy

X = np.random.default_rng(0).standard_normal((2, 9, 3)).astype("float32")


def naive(tokens, mode, prefix, k):
    """Token by token, in float64."""
    pooled = np.zeros((len(tokens), tokens.shape[2]))
    for row, image in enumerate(tokens.astype("float64")):
        for channel in range(tokens.shape[2]):
            values = sorted(image[prefix:, channel], reverse=True)
            average = sum(values) / len(values)
            pooled[row, channel] = {
                "class_token": image[0, channel],
                "average": average,
                "max": values[0],
                "k_max": sum(values[:k]) / k,
                "average_plus_max": average + values[0],
            }[mode]
    return pooled


@pytest.mark.parametrize("mode", MODES)
def test_layer(mode, policy, tmp_path):
    arguments = {"mode": mode, "prefix_tokens": 2, "k": 3}
    check_layer(TokenPooling, arguments, X, (2, 3), tmp_path)


@pytest.mark.parametrize("prefix", [0, 1, 5])
@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("mode", MODES)
def test_equals_the_naive_pooling(mode, k, prefix):
    np.testing.assert_allclose(
        to_numpy(pool_tokens(X, mode, prefix, k)),
        naive(X, mode, prefix, k),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("mode", MODES[1:])
def test_prefix_tokens_are_left_out(mode):
    changed = X.copy()
    changed[:, :2] = 100.0
    layer = TokenPooling(mode, prefix_tokens=2, k=3)
    np.testing.assert_array_equal(layer(changed), layer(X))


def test_class_token_is_the_first_alone():
    changed = X.copy()
    changed[:, 1:] = 100.0
    layer = TokenPooling("class_token", prefix_tokens=2)
    np.testing.assert_array_equal(layer(changed), X[:, 0])


def test_equals_the_pooling_of_a_map():
    maps = X.reshape(2, 3, 3, 3)
    np.testing.assert_array_equal(
        TokenPooling("k_max", k=4)(X), GlobalKMaxPooling2D(4)(maps)
    )
    np.testing.assert_allclose(
        TokenPooling("average")(X),
        keras.layers.GlobalAveragePooling2D()(maps),
        atol=1e-6,
    )


def test_averages_large_half_precision_activations_without_overflow():
    x = np.full((1, 64, 2), 3e4, "float16")
    for mode in ("average", "k_max"):
        layer = TokenPooling(mode, k=64, dtype="float16")
        np.testing.assert_allclose(to_numpy(layer(x)), 3e4, rtol=1e-3)


def test_tokens_may_be_unknown_until_the_call():
    x = keras.Input((None, 3))
    layer = TokenPooling("k_max", prefix_tokens=1, k=2)
    model = keras.Model(x, layer(x))
    np.testing.assert_allclose(
        model.predict(X, verbose=0), naive(X, "k_max", 1, 2), rtol=1e-5
    )


def test_roundtrip_keeps_the_arguments():
    layer = roundtrip(TokenPooling("k_max", prefix_tokens=5, k=7))
    assert (layer.mode, layer.prefix_tokens, layer.k) == ("k_max", 5, 7)


def test_refuses_an_unknown_mode():
    with pytest.raises(ValueError, match="one of 'class_.*mode='cls'"):
        TokenPooling("cls")


def test_refuses_a_class_token_where_there_is_none():
    with pytest.raises(ValueError, match="prefix_tokens=0.*before the patches"):
        TokenPooling("class_token", prefix_tokens=0)


@pytest.mark.parametrize("mode", MODES)
def test_the_usual_prefix_is_the_class_token(mode):
    layer = TokenPooling(mode)
    number = int(mode == "class_token")
    assert roundtrip(layer).prefix_tokens == layer.prefix_tokens == number
    expected = TokenPooling(mode, prefix_tokens=number)(X)
    np.testing.assert_array_equal(layer(X), expected)


@pytest.mark.parametrize("prefix", [-1, 1.0, True])
def test_refuses_a_prefix_that_is_no_count(prefix):
    with pytest.raises(ValueError, match=f"`prefix_tokens` must.*={prefix}"):
        TokenPooling("max", prefix_tokens=prefix)


@pytest.mark.parametrize("k", [0, 2.0, None, False])
def test_refuses_a_k_that_is_no_positive_integer(k):
    with pytest.raises(ValueError, match=f"`k` must be a positive.*k={k}"):
        TokenPooling("k_max", k=k)


def test_refuses_more_than_there_are():
    with pytest.raises(ValueError, match=r"least 8 patches.*prefix_tokens=2"):
        TokenPooling("k_max", prefix_tokens=2, k=8)(X)
    with pytest.raises(ValueError, match=r"least 1 patches.*prefix_tokens=9"):
        TokenPooling("max", prefix_tokens=9)(X)
