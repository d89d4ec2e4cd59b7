"""Assigns the entries of a checkpoint to the variables of a network."""

from collections.abc import Mapping
from dataclasses import dataclass

import keras
import numpy as np

from keras_dml.errors import UsageError

WRAPPERS = ("module.", "model.")
SHOWN = 5

# The weight of a convolution and that of a batch normalization share a name.
TORCH_VARIABLES = {
    "weight": ("kernel", "gamma"),
    "bias": ("bias", "beta"),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}
TENSORFLOW_VARIABLES = {
    "weights": ("kernel",),
    "beta": ("beta",),
    "moving_mean": ("moving_mean",),
    "moving_variance": ("moving_variance",),
}


@dataclass(frozen=True)
class Layout:
    """Maps the names in a checkpoint to variables of a network.

    Attributes:
        framework: The framework that wrote the checkpoint, `"torch"` or
            `"tensorflow"`.
        classifier: Prefixes of the names that do not belong to the backbone.
        scope: Prefix of all other names.
    """

    framework: str
    classifier: tuple[str, ...]
    scope: str = ""

    def leaves_out(self, key: str) -> bool:
        """Returns whether an entry belongs to a classifier or to training."""
        counter = key.endswith("num_batches_tracked") or key == "global_step"
        return counter or key.startswith(self.classifier)

    def places(self, key: str) -> list[tuple[str, str]]:
        """Returns the layer and variable names that an entry may mean.

        Args:
            key: Name of the entry.

        Returns:
            Pairs of a layer name and a variable name; a network has at most
            one of them.
        """
        torch = self.framework == "torch"
        separator = "." if torch else "/"
        owner, _, leaf = key.removeprefix(self.scope).rpartition(separator)
        variables = TORCH_VARIABLES if torch else TENSORFLOW_VARIABLES
        layer = owner.replace(separator, "_")
        return [(layer, variable) for variable in variables.get(leaf, ())]


LAYOUTS = {
    # Older files call the classifier `fc`.
    "bn_inception": Layout("torch", ("last_linear.", "fc.")),
    "googlenet": Layout("torch", ("fc.", "aux1.", "aux2.")),
    "resnet50_v1_5": Layout("torch", ("fc.",)),
    "inception_v1": Layout(
        "tensorflow", ("InceptionV1/Logits/",), scope="InceptionV1/"
    ),
}


def fit_checkpoint(
    network: keras.Model, entries: Mapping[str, np.ndarray], layout: Layout
) -> list[str]:
    """Fills all variables of a network, each from one entry.

    Assigns nothing unless everything fits.

    Args:
        network: One of the networks of this package.
        entries: The entries of the checkpoint, by name. A prefix of a wrapper
            (`module.`, `model.`) before all names is ignored.
        layout: How the checkpoint names the weights.

    Returns:
        Names of the entries that belong to the classifier or to training, and
        are left out.

    Raises:
        UsageError: If an entry has no place, a variable has no entry, shapes
            differ, or a value is not finite. The message names the first few
            of each.
    """
    entries = _unwrapped(entries)
    variables = {
        (layer.name, variable.name): variable
        for layer in network.layers
        for variable in layer.weights
    }
    left_out, homeless, wrong = [], [], []
    filled = {}
    for key, value in entries.items():
        if layout.leaves_out(key):
            left_out.append(key)
            continue
        places = [one for one in layout.places(key) if one in variables]
        if not places:
            homeless.append(key)
            continue
        (place,) = places
        filled[place] = _as_keras(value, layout)
        wrong += _mistakes(key, filled[place], variables[place])
    empty = ["/".join(place) for place in variables if place not in filled]
    problems = [
        *_listed("entries of the file have no place in the network", homeless),
        *_listed("variables of the network have no entry in the file", empty),
        *_listed("entries do not fit", wrong),
    ]
    if problems:
        raise UsageError(
            f"The checkpoint is not one of {network.name!r}: "
            f"{'; '.join(problems)}. Pass the network that it was made with, "
            "or another file."
        )
    for place, value in filled.items():
        variables[place].assign(value)
    return left_out


def _unwrapped(entries):
    for wrapper in WRAPPERS:
        if entries and all(key.startswith(wrapper) for key in entries):
            entries = {
                key.removeprefix(wrapper): value
                for key, value in entries.items()
            }
    return entries


def _as_keras(value, layout):
    if layout.framework == "torch" and value.ndim == 4:
        return value.transpose(2, 3, 1, 0)
    # The first public BN-Inception has vectors of shape (1, width).
    if value.ndim == 2 and value.shape[0] == 1:
        return value[0]
    return value


def _mistakes(key, value, variable):
    if value.shape != tuple(variable.shape):
        return [
            f"{key} has the shape {value.shape} in the layout of Keras, and "
            f"{variable.path} {tuple(variable.shape)}"
        ]
    if not np.isfinite(value).all():
        return [f"{key} holds values that are not finite"]
    return []


def _listed(what, names):
    if not names:
        return []
    shown = ", ".join(names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{len(names)} {what} ({shown}{more})"]
