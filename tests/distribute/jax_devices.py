"""What JAX computes on two devices, and on one; run as a script.

Its numbers come as JSON, for `test_jax_devices.py`.
"""

import json

import jax
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from keras_dml import layers, losses
from tests import backend_numbers
from tests.losses.cases import CASES, LABELS

CLASSES, DIM = 8, 6


def values_and_gradients(functions, inputs):
    """The loss of each case and its gradient, compiled as one."""
    results = jax.jit(
        lambda inputs: {
            name: jax.value_and_grad(function)(*inputs[name])
            for name, function in functions.items()
        }
    )(inputs)
    return {
        name: [float(value), np.asarray(gradient).tolist()]
        for name, (value, gradient) in results.items()
    }


def of_losses(devices):
    """Every loss of a batch on one device, and of one cut in halves."""
    functions, inputs = {}, {}
    for name, case in CASES.items():
        loss = case.make()
        functions[name] = lambda y_pred, y_true, loss=loss: loss(y_true, y_pred)
        inputs[name] = (case.predictions(LABELS).astype("float32"), LABELS)
    halves = NamedSharding(devices, PartitionSpec("batch"))
    return {
        "one": values_and_gradients(functions, inputs),
        "two": values_and_gradients(functions, jax.device_put(inputs, halves)),
    }


def model_of_proxies():
    """A trained model of proxies, and these."""
    keras.utils.set_random_seed(0)
    x = keras.Input((DIM,))
    proxies = layers.Proxies(CLASSES, name="proxies")
    embedding = layers.EmbeddingHead(DIM, name="head")(x)
    model = keras.Model(x, proxies(embedding))
    model.compile("adam", losses.ProxyAnchor())
    rows = np.random.default_rng(0).standard_normal((16, DIM))
    labels = np.arange(16, dtype="int32") % CLASSES
    model.fit(rows, labels, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return proxies.proxies.value


def of_sharded_proxies():
    """Proxies of which each device holds half of the classes."""
    whole = model_of_proxies()
    mesh = keras.distribution.DeviceMesh((1, 2), ("batch", "model"))
    layout = keras.distribution.LayoutMap(mesh)
    layout["proxies/proxies"] = ("model", None)
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layout)
    )
    shared = model_of_proxies()
    return {
        "one": np.asarray(whole).tolist(),
        "two": np.asarray(shared).tolist(),
        "held": [one.data.shape for one in shared.addressable_shards],
    }


def main():
    devices = Mesh(np.array(jax.devices()), ("batch",))
    found = {
        "losses": of_losses(devices),
        "proxies": of_sharded_proxies(),
    }
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    found["trained"] = backend_numbers.trained()
    used = keras.Variable(0.0).value.sharding.device_set
    found["devices"] = len(used)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
