"""Models as functions of batches."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.models import forward, forward_function


def test_many_models_are_traced_without_a_warning(caplog):
    """A comparison of folds measures many models in one process."""
    caplog.set_level(logging.WARNING)
    for _ in range(8):
        layers = [keras.layers.Dropout(0.5), keras.layers.Dense(3)]
        model = keras.Sequential([keras.Input((4,)), *layers])
        embed = forward_function(model)
        for rows in (8, 3):
            batch = np.ones((rows, 4), np.float32)
            np.testing.assert_allclose(
                embed(tf.constant(batch)),
                model(batch, training=False),
                rtol=1e-5,
            )
    assert "retracing" not in caplog.text


class _RowsAtOnce(keras.layers.Layer):
    """Gives each row its mean, and how many rows came with it."""

    def call(self, images):
        means = keras.ops.mean(images, (1, 2, 3))
        rows = keras.ops.cast(keras.ops.shape(images)[0], "float32")
        return keras.ops.stack([means, keras.ops.ones_like(means) * rows], 1)


@pytest.mark.skipif(
    bool(tf.config.list_logical_devices("GPU")), reason="a GPU takes them all"
)
@pytest.mark.parametrize(
    "sizes", [[], [1], [3], [3, 3], [3, 3, 1]], ids=lambda sizes: sum(sizes)
)
def test_a_processor_embeds_a_few_images_at_a_time(sizes, monkeypatch):
    monkeypatch.setattr(forward, "PIXELS_AT_ONCE", 3 * 8 * 8 + 1)
    model = keras.Sequential([keras.Input((8, 8, 2)), _RowsAtOnce()])
    images = np.random.default_rng(0).random((sum(sizes), 8, 8, 2), np.float32)
    means, rows = forward_function(model)(images).numpy().T
    np.testing.assert_allclose(means, images.mean((1, 2, 3)), rtol=1e-5)
    np.testing.assert_array_equal(rows, np.repeat(sizes, sizes))
