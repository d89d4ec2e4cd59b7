"""Makes backbones from the image networks of keras-hub, by preset name."""

import contextlib
import functools
import os
import random
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import keras

from keras_dml.errors import RunError, UsageError
from keras_dml.layers import NestedNetwork
from keras_dml.models.backbone import Backbone
from keras_dml.models.hub_families import (
    HubFamily,
    Preprocessing,
    family_of,
    has_own_layers,
)
from keras_dml.naming import nearest

PREFIX = "hub:"

_CONVERTER_FILE = "image_converter.json"
_USUAL_SIZE = 224


def hub_backbone(name: str) -> Backbone:
    """Describes the image network of a preset of keras-hub.

    Reads the configuration of the preset, which keras-hub downloads once, but
    no weights. Builds the network to find the shape of its output.

    Args:
        name: `"hub:PRESET"`, where PRESET is a name that keras-hub knows, a
            handle such as `hf://USER/MODEL`, or a folder written by
            `save_to_preset`.

    Raises:
        UsageError: If keras-hub is not installed or does not know the preset,
            or if the preset is not an image network.
        RunError: If the preset could not be downloaded.

    Example:

    ```python
    backbone = hub_backbone("hub:dinov2_small")
    ```
    """
    preset = name.removeprefix(PREFIX)
    if os.path.isdir(os.path.expanduser(preset)):
        preset = os.path.realpath(os.path.expanduser(preset))
    return _described(name, preset)


@functools.lru_cache(maxsize=32)
def _described(name: str, preset: str) -> Backbone:
    # Building the network must not change later random draws.
    state = random.getstate()
    network = _load(name, preset, load_weights=False)
    random.setstate(state)
    family = family_of(network)
    rank = _rank_of_features(name, network, family)
    shape = network.get_config().get("image_shape")
    size: Any = shape[0] if shape is not None else None
    fixed = size is not None and not family.flexible
    mode, scale, offset = _preprocessing(name, preset, family)
    flexible = family.flexible and shape is not None
    build = partial(_build, name, preset, flexible)
    tokens = family.prefix_tokens
    prefix = tokens(network) if tokens is not None and rank == 3 else 0
    return Backbone(
        builder=build,
        preprocessing=mode,
        scale=scale,
        offset=offset,
        image_size=size or _USUAL_SIZE,
        min_image_size=size if fixed else getattr(network, "patch_size", 32),
        fixed_size=fixed,
        # Positions are added to as many tokens as an image has.
        any_size=rank == 4,
        pretrained="preset",
        rgb=True,
        paper=f"{type(network).__name__} of keras-hub",
        class_token=prefix > 0,
        prefix_tokens=prefix,
        pooled_builder=(
            partial(build, pooled=True) if family.output_layer else None
        ),
    )


def _build(name, preset, flexible, input_shape, weights=None, pooled=False):
    shape = {"image_shape": tuple(input_shape)} if flexible else {}
    network = _load(name, preset, load_weights=weights is not None, **shape)
    for layer in network._flatten_layers(include_self=False):
        if getattr(layer, "mask_token", None) is not None:
            # Only pre-training uses it: it gets no gradient here.
            layer.mask_token.trainable = False
    if not (has_own_layers(network) or isinstance(network.input, dict)):
        # A graph of Keras layers loads without keras-hub.
        return keras.Model(network.input, network.output, name="backbone")
    attribute = family_of(network).output_layer
    if attribute is None:
        return NestedNetwork(network, name="backbone")
    # Rename the network: one of its layers may be called "head", like ours.
    network = _named("hub", network)
    layer = None if pooled else getattr(network, attribute).name
    return NestedNetwork(network, output_layer=layer, name="backbone")


def _named(name, network):
    copy = type(network).from_config({**network.get_config(), "name": name})
    copy.set_weights(network.get_weights())
    return copy


def _load(name, preset, load_weights, **arguments):
    """Loads the image network of a preset, which may hold other networks."""
    hub = _keras_hub(name)
    with _loading(name, preset):
        network = hub.models.Backbone.from_preset(
            preset,
            load_weights=load_weights,
            dtype=keras.config.dtype_policy().name,
            **arguments,
        )
    network = getattr(network, "vision_encoder", network)
    inputs = keras.tree.flatten(network.input)
    outputs = keras.tree.flatten(network.output)
    if [len(x.shape) for x in inputs] != [4] or len(outputs) != 1:
        raise UsageError(
            f"`backbone`: {name!r} holds a {type(network).__name__}, "
            "which is no network from one image to one map of features. "
            "Choose an image backbone of keras-hub."
        )
    return network


def _keras_hub(name):
    try:
        import keras_hub
    except ImportError as error:
        raise UsageError(
            f"`backbone`: {name!r} is a network of keras-hub, which "
            f"cannot be imported: {error}. Install it with `pip install "
            "keras-dml[hub]`, or choose one of `keras-dml backbones`."
        ) from error
    return keras_hub


@contextlib.contextmanager
def _loading(name: str, preset: str) -> Iterator[None]:
    """Turns every error of keras-hub into a short message."""
    try:
        with warnings.catch_warnings():
            # Keras warns about masks and layers of keras-hub's networks.
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        message = " ".join(str(error).split())[:300].rstrip(".")
        if "Unknown preset identifier" in message:
            known = list(_keras_hub(name).models.Backbone.presets)
            raise UsageError(
                f"`backbone`: keras-hub knows no preset {preset!r}, and "
                "there is no such folder. Nearest: "
                f"{nearest(preset, known)}."
            ) from error
        if os.path.isdir(preset):
            raise UsageError(
                f"`backbone`: the folder of {name!r} is no complete "
                f"preset: {message}. Write it with `save_to_preset`, or, if "
                "only its weights are missing, pass `weights='none'`."
            ) from error
        raise RunError(
            f"The preset {name!r} could not be loaded by keras-hub: {message}. "
            "Without a network, pass a folder that `save_to_preset` wrote: "
            "`hub:./FOLDER`."
        ) from error


def _preprocessing(name, preset, family: HubFamily) -> Preprocessing:
    """Returns the preprocessing of a preset.

    That of its image converter, or of its family if it has no converter.
    """
    folder = os.path.isdir(preset)
    if folder and not os.path.isfile(os.path.join(preset, _CONVERTER_FILE)):
        return family.preprocessing
    hub = _keras_hub(name)
    with _loading(name, preset):
        try:
            converter = hub.layers.ImageConverter.from_preset(preset)
        except FileNotFoundError:
            return family.preprocessing
    scale = 1.0 if converter.scale is None else converter.scale
    offset = 0.0 if converter.offset is None else converter.offset
    return ("affine", scale, offset)


def _rank_of_features(name, network, family):
    output = network.output
    if family.output_layer is not None:
        output = getattr(network, family.output_layer).output
    rank = len(output.shape)
    if rank == 4 or (rank == 3 and family.prefix_tokens is not None):
        return rank
    raise UsageError(
        f"`backbone`: what {type(network).__name__} of {name!r} gives "
        f"is not known to be features of an image: {tuple(output.shape)}. "
        "Pass the network from Python, see "
        "`keras_dml.models.custom_backbone`."
    )
