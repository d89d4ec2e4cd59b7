"""What a clone of other layers keeps, and what it cannot change."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_dml.errors import UsageError
from keras_dml.layers import InChunks, NestedNetwork
from keras_dml.models import (
    build_embedder,
    float32_clone,
    set_batch_norm_mode,
)
from keras_dml.models.precision import dtype_policy
from tests.conformance import to_numpy

SHAPE = (12, 12, 3)
IMAGES = np.random.default_rng(0).normal(size=(4, *SHAPE)).astype("float32")
HALF = "mixed_bfloat16"


def with_frozen_statistics(model):
    return set_batch_norm_mode(model, "frozen_statistics")


each_function = pytest.mark.parametrize(
    "cloned", [with_frozen_statistics, float32_clone]
)


class More(keras.Model):
    """A functional model that computes more than its graph."""

    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs, training=training) + 1


class Doubled(More):
    """Makes its own graph, so that Keras can clone the graph alone."""

    def __init__(self):
        super().__init__(*graph())


def graph():
    image = keras.Input(SHAPE)
    x = layers.Conv2D(4, 3)(image)
    return image, layers.BatchNormalization()(x)


def subclassed():
    return Doubled()


def in_chunks():
    return InChunks(keras.Model(*graph()), 2)


def of_sequences():
    return keras.Sequential(
        [
            layers.BatchNormalization(),
            layers.Reshape((12, 36)),
            layers.Bidirectional(layers.LSTM(2)),
        ]
    )


def sequential():
    return keras.Sequential([layers.Conv2D(4, 3), layers.BatchNormalization()])


def inheriting():
    return More(*graph())


def nesting(make_layer):
    """A network in half precision around a layer."""
    with dtype_policy(HALF):
        image = keras.Input(SHAPE)
        return keras.Model(image, make_layer()(image))


@each_function
@pytest.mark.parametrize("make_layer", [sequential, inheriting])
def test_a_clone_computes_the_same(cloned, make_layer):
    model = nesting(make_layer)
    clone = cloned(model)
    assert clone is not model
    np.testing.assert_allclose(
        to_numpy(clone(IMAGES)), to_numpy(model(IMAGES)), atol=0.05
    )


@each_function
def test_what_overrides_call_is_refused(cloned):
    message = "cannot change the subclassed model Doubled"
    with pytest.raises(UsageError, match=message):
        cloned(nesting(subclassed))


def test_a_nested_network_is_refused():
    message = "cannot change the subclassed model Doubled. Choose `frozen`"
    with pytest.raises(UsageError, match=message):
        with_frozen_statistics(NestedNetwork(Doubled()))


def test_an_embedder_refuses_what_overrides_call():
    message = "frozen_statistics'` cannot change.*Doubled.*Choose `frozen`"
    with pytest.raises(UsageError, match=message):
        build_embedder(
            nesting(subclassed), SHAPE, dim=8, batch_norm="frozen_statistics"
        )


@each_function
def test_layers_inside_layers_are_refused(cloned):
    message = "cannot change the layer 'batch_normalization"
    with pytest.raises(UsageError, match=message):
        cloned(nesting(in_chunks))


def test_half_precision_inside_layers_is_refused():
    message = "cannot change the layer '.*lstm.*policy `float32`"
    with pytest.raises(UsageError, match=message):
        float32_clone(nesting(of_sequences))


class OwnNormalization(layers.BatchNormalization):
    """Its class may compute something else."""


def test_a_subclass_of_batch_norm_is_refused():
    message = "cannot change the layer 'own_normalization"
    with pytest.raises(UsageError, match=message):
        with_frozen_statistics(nesting(OwnNormalization))


def test_layers_that_need_no_change_may_be_inside_layers():
    clone = with_frozen_statistics(nesting(of_sequences))
    assert clone(IMAGES).shape == (4, 4)


def test_what_has_no_batch_norm_stays():
    image = keras.Input(SHAPE)
    model = keras.Model(image, layers.Conv2D(4, 3)(image))
    assert with_frozen_statistics(model) is model


def test_a_clone_is_float32_under_each_policy(policy):
    clone = float32_clone(nesting(sequential))
    assert {one.compute_dtype for one in clone._flatten_layers()} == {"float32"}
    assert keras.config.dtype_policy().name == policy
