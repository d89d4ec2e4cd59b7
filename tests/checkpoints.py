"""Checkpoints as PyTorch names and lays out their weights."""

import numpy as np

from keras_dml.models import BACKBONES
from tests.conformance import to_numpy

_NAMES = {
    "kernel": "weight",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def changed_googlenet():
    """A network that differs from the initial one in every variable."""
    network = BACKBONES["googlenet"].builder(input_shape=(32, 32, 3))
    for weight in network.weights:
        weight.assign(weight + 0.25)
    return network


def write_googlenet(path, network):
    """Writes the weights of `googlenet` as torchvision does, as an `.npz`."""
    entries = {"fc.bias": np.zeros(1000)}
    for layer in network.layers:
        for variable in layer.weights:
            value = to_numpy(variable)
            if value.ndim == 4:
                value = value.transpose(3, 2, 0, 1)
            name = layer.name.replace("_", ".")
            entries[f"{name}.{_NAMES[variable.name]}"] = value
    np.savez(path, **entries)
