"""What the layer that distills refuses; see `tests/losses` for its numbers."""

import keras
import numpy as np
import pytest

from keras_dml import layers, losses

X = np.ones((2, 3), "float32")


@pytest.mark.parametrize("loss", [keras.losses.MeanSquaredError(), None])
@pytest.mark.parametrize("weight", [None, 2.0])
def test_another_loss_is_refused(loss, weight):
    with pytest.raises(ValueError, match="`loss` must be a.*DistillationLoss"):
        layers.Distillation(loss, weight)


@pytest.mark.parametrize("inputs", [X, [X, X], [X, X, X, X]])
def test_other_inputs_than_three_are_refused(inputs):
    layer = layers.Distillation(losses.Relational(), name="here")
    with pytest.raises(ValueError, match="'here' takes the list.*teacher"):
        layer(inputs)


def test_a_prefix_longer_than_the_embedding_is_refused():
    layer = layers.Distillation(losses.Relational(), prefixes=[2, 4])
    with pytest.raises(ValueError, match="`prefixes` must be at most 3.*4"):
        layer([X, X, X])
