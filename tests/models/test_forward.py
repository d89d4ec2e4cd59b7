"""Models as functions of batches."""

import logging

import keras
import numpy as np
import tensorflow as tf

from keras_dml.models import forward_function


def test_many_models_are_traced_without_a_warning(caplog):
    """A comparison of folds measures many models in one process."""
    caplog.set_level(logging.WARNING)
    for _ in range(8):
        layers = [keras.layers.Dropout(0.5), keras.layers.Dense(3)]
        model = keras.Sequential([keras.Input((4,)), *layers])
        forward = forward_function(model)
        for rows in (8, 3):
            batch = np.ones((rows, 4), np.float32)
            np.testing.assert_allclose(
                forward(tf.constant(batch)),
                model(batch, training=False),
                rtol=1e-5,
            )
    assert "retracing" not in caplog.text
