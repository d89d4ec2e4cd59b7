"""What layers and losses compute, on the backend of this process.

Run as a script it prints the numbers as JSON, for `test_backends.py`.
"""

import json

import keras
import numpy as np
from keras import ops

from keras_dml import evaluation, layers, losses
from keras_dml.callbacks import LearningRate
from keras_dml.optimizers import PerVariable, TorchAdam

LABELS = np.array([0, 2, 1, 0], "int32")


def numbers() -> dict[str, list]:
    """Results of fixed inputs and weights, by name."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((4, 3, 3, 5)).astype("float32")
    features = rng.standard_normal((4, 6)).astype("float32")
    found = {
        "k_max": layers.GlobalKMaxPooling2D(3)(images),
        "average_plus_max": layers.GlobalAveragePlusMaxPooling2D()(images),
        "zero": layers.unit_rows(0 * features),
    }
    for normalization in (None, "l2", "batch_norm"):
        head = layers.EmbeddingHead(5, normalization=normalization)
        found[f"head_{normalization}"] = with_weights(head, features, rng)
    frozen = layers.FrozenStatisticsBatchNormalization()
    found["batch_norm"] = with_weights(frozen, features, rng)
    for metric in layers.proxies.METRICS:
        proxies = layers.Proxies(3, metric, centres=2)
        found[metric] = with_weights(proxies, features, rng)
    logits = layers.ScaledLogits(9.0, use_bias=True)
    scores = with_weights(logits, features[:, :3], rng)
    for name in losses.LOSSES:
        found[name] = losses.get(name, reduction="none")(LABELS, scores)
    return {
        name: np.asarray(ops.convert_to_numpy(value)).tolist()
        for name, value in found.items()
    }


def with_weights(layer, inputs, rng):
    layer.build(inputs.shape)
    layer.set_weights(
        [abs(rng.standard_normal(w.shape)) for w in layer.get_weights()]
    )
    return layer(inputs)


def trained() -> dict[str, list]:
    """Weights after three steps of two groups, with labels and rates."""
    x = keras.Input((6,))
    h = layers.EmbeddingHead(5, name="head")(x)
    h = layers.Proxies(3, name="proxies")(h)
    model = keras.Model(x, layers.ScaledLogits(9.0, name="logits")(h))
    rng = np.random.default_rng(1)
    model.set_weights(
        [
            np.asarray(9.0)
            if variable.path == "logits/scale"
            else rng.standard_normal(variable.shape)
            for variable in model.weights
        ]
    )
    optimizer = PerVariable(
        TorchAdam(0.01, epsilon=1.0, l2=0.1),
        {"proxies/.*": keras.optimizers.SGD(0.5)},
    )
    model.compile(optimizer, losses.ProxyNCAPlusPlus())
    features = rng.standard_normal((12, 6)).astype("float32")
    model.fit(
        features,
        np.tile(LABELS, 3),
        batch_size=4,
        shuffle=False,
        verbose=0,
    )
    LearningRate(model.optimizer).multiply(0.5)
    assert evaluation.retrieval_metrics(features, np.tile(LABELS, 3))
    return {v.path: np.asarray(v.numpy()).tolist() for v in model.weights}


if __name__ == "__main__":
    print(json.dumps({"numbers": numbers(), "trained": trained()}))
