"""Every entry has its place, and every variable its entry."""

import keras
import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.models.conversion import Layout, fit_checkpoint
from tests.conformance import to_numpy

LAYOUT = Layout("torch", ("fc.",))
RNG = np.random.default_rng(0)


@pytest.fixture
def network():
    image = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, (3, 5), name="stem_conv")(image)
    x = keras.layers.BatchNormalization(name="stem_bn")(x)
    return keras.Model(image, x, name="tiny")


@pytest.fixture
def entries():
    return {
        "stem.conv.weight": RNG.normal(size=(4, 3, 3, 5)),
        "stem.conv.bias": RNG.normal(size=4),
        "stem.bn.weight": RNG.normal(size=4),
        "stem.bn.bias": RNG.normal(size=4),
        "stem.bn.running_mean": RNG.normal(size=4),
        "stem.bn.running_var": RNG.uniform(0.5, 1.5, 4),
        "stem.bn.num_batches_tracked": np.array(7),
        "fc.weight": RNG.normal(size=(10, 4)),
    }


def refusal(network, entries):
    """Says what is wrong, and has changed nothing."""
    before = network.get_weights()
    with pytest.raises(UsageError) as caught:
        fit_checkpoint(network, entries, LAYOUT)
    for old, new in zip(before, network.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    return str(caught.value)


@pytest.mark.parametrize("wrapper", ["", "module.", "model."])
def test_every_variable_gets_its_entry(wrapper, network, entries):
    left_out = fit_checkpoint(
        network, {wrapper + key: one for key, one in entries.items()}, LAYOUT
    )
    assert left_out == ["stem.bn.num_batches_tracked", "fc.weight"]
    kernel = to_numpy(network.get_layer("stem_conv").kernel)
    for filters in range(4):
        for channel in range(3):
            np.testing.assert_allclose(
                kernel[:, :, channel, filters],
                entries["stem.conv.weight"][filters, channel],
                rtol=1e-6,
            )
    norm = network.get_layer("stem_bn")
    for name, variable in (
        ("conv.bias", network.get_layer("stem_conv").bias),
        ("bn.weight", norm.gamma),
        ("bn.bias", norm.beta),
        ("bn.running_mean", norm.moving_mean),
        ("bn.running_var", norm.moving_variance),
    ):
        np.testing.assert_allclose(
            to_numpy(variable), entries[f"stem.{name}"], rtol=1e-6
        )


def test_vectors_of_one_row_are_vectors(network, entries):
    """As in the first public file of BN-Inception."""
    entries["stem.bn.weight"] = entries["stem.bn.weight"][None]
    fit_checkpoint(network, entries, LAYOUT)
    np.testing.assert_allclose(
        to_numpy(network.get_layer("stem_bn").gamma),
        entries["stem.bn.weight"][0],
        rtol=1e-6,
    )


def test_both_sides_of_a_mistake_are_named(network, entries):
    entries["stem.norm.weight"] = entries.pop("stem.bn.weight")
    entries["stem.bn.bias"] = np.zeros(5)
    entries["stem.bn.running_mean"][2] = np.nan
    message = refusal(network, entries)
    assert "not one of 'tiny'" in message
    assert "1 entries of the file have no place" in message
    assert "(stem.norm.weight)" in message
    assert "1 variables of the network have no entry" in message
    assert "(stem_bn/gamma)" in message
    assert "stem.bn.bias has the shape (5,)" in message
    assert "stem_bn/beta (4,)" in message
    assert "stem.bn.running_mean holds values that are not finite" in message


def test_long_lists_are_cut(network, entries):
    entries |= {f"tail.{number}.weight": np.zeros(1) for number in range(9)}
    message = refusal(network, entries)
    assert "9 entries" in message
    assert "tail.4.weight and 4 more" in message
    assert "tail.5.weight" not in message


def test_an_empty_checkpoint_fills_nothing(network):
    assert "6 variables of the network" in refusal(network, {})
