"""One helper per promise that every public class makes."""

import json

import keras
import numpy as np
from keras import ops


def roundtrip(obj):
    """Serializes to JSON and back by the registered name alone."""
    blob = json.dumps(keras.saving.serialize_keras_object(obj))
    revived = keras.saving.deserialize_keras_object(json.loads(blob))
    assert type(revived) is type(obj)
    config = obj.get_config()
    assert revived.get_config() == config
    # Keras' optimizers put a schedule in the place of its config.
    if not isinstance(obj, keras.optimizers.Optimizer):
        for _ in range(2):
            type(obj).from_config(config)
        assert config == obj.get_config()
    return revived


def to_numpy(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")))


def check_layer(cls, kwargs, inputs, output_shape, folder):
    """Config, shapes, float32 weights, finite on zeros, save and load."""
    roundtrip(cls(**kwargs))
    layer = cls(**kwargs)
    x = keras.Input(inputs.shape[1:])
    model = keras.Model(x, layer(x))
    assert model.output_shape == (None, *output_shape[1:])
    assert layer.compute_output_shape((None, *inputs.shape[1:])) == (
        None,
        *output_shape[1:],
    )
    eager = to_numpy(layer(inputs))
    assert eager.shape == output_shape
    assert np.isfinite(eager).all()
    assert np.isfinite(to_numpy(layer(np.zeros_like(inputs)))).all()
    assert all(weight.dtype == "float32" for weight in layer.weights)
    predicted = to_numpy(model.predict(inputs, verbose=0))
    np.testing.assert_allclose(predicted, eager, atol=1e-2)
    path = folder / "model.keras"
    model.save(path)
    revived = keras.saving.load_model(path)
    np.testing.assert_allclose(
        to_numpy(revived.predict(inputs, verbose=0)), predicted, atol=1e-6
    )


def numerical_gradient(function, x, epsilon=1e-4):
    """Central differences of a scalar function of a float64 array."""
    gradient = np.zeros_like(x, dtype="float64")
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x, dtype="float64")
        step[index] = epsilon
        gradient[index] = (function(x + step) - function(x - step)) / (
            2 * epsilon
        )
    return gradient
