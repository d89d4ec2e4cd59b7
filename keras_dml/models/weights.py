"""Builds a backbone with its initial weights."""

import contextlib
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import h5py
import keras
import numpy as np

from keras_dml.errors import RunError, UsageError
from keras_dml.layers import NestedNetwork
from keras_dml.models.backbone import Backbone
from keras_dml.models.backbones import get_backbone

SUFFIXES = (".weights.h5", ".h5", ".keras")


def build_with_weights(
    name: str,
    input_shape: tuple[int, int, int],
    weights: str | None,
    *,
    backbone: Backbone | None = None,
    pooled: bool = False,
) -> keras.layers.Layer:
    """Builds a backbone with its initial weights.

    Args:
        name: One of `list_backbones()`, or `hub:PRESET`.
        input_shape: Height, width and channels of the preprocessed images.
        weights: `"none"` or `None` for random weights; `"imagenet"` for the
            published weights, which Keras downloads once; `"preset"` for the
            weights of a preset of keras-hub; `"auto"` for the published
            weights if the backbone has some, else random weights; or the path
            of a `.weights.h5`, `.h5` or `.keras` file of the backbone, or of
            the `.keras` file of an embedder.
        backbone: The backbone of that name. Defaults to `None`, which means
            `get_backbone(name)`.
        pooled: Whether a network that can pool its tokens pools them. Defaults
            to `False`.

    Returns:
        A model or layer named "backbone" with 4D features, tokens or pooled
        features.

    Raises:
        UsageError: If the file is missing or does not fit, or the backbone
            has no published weights.
        RunError: If the published weights could not be downloaded.
    """
    backbone = backbone or get_backbone(name)
    weights = "none" if weights is None else weights
    check_weights(name, weights, backbone)
    if pooled and backbone.pooled_builder is not None:
        backbone = replace(backbone, builder=backbone.pooled_builder)
    if weights == "auto":
        weights = backbone.pretrained
    if weights == "imagenet" or weights == backbone.pretrained != "none":
        model = _published(name, backbone, input_shape)
    else:
        model = backbone.builder(input_shape=input_shape, weights=None)
        if weights != "none":
            _load(model, Path(os.path.expanduser(weights)), name)
    if isinstance(model, NestedNetwork):
        return model
    return keras.Model(model.inputs[0], model.outputs[0], name="backbone")


def check_weights(name: str, weights: str, backbone: Backbone) -> None:
    """Checks, without building it, that a backbone can have such weights.

    Args:
        name: Name of the backbone.
        weights: See `build_with_weights`.
        backbone: The backbone.

    Raises:
        UsageError: If the backbone has no published weights, or none that
            Keras can read, or there is no such file.
    """
    if weights == "imagenet" and backbone.pretrained == "none":
        raise UsageError(
            f"`weights='imagenet'` is not available for {name!r}, which is "
            "trained from random weights. Use `none` or a path."
        )
    if weights in ("auto", "imagenet") and backbone.checkpoint:
        raise UsageError(
            f"The weights of {name!r} are public for another framework only. "
            f"Get {backbone.checkpoint}, convert it with "
            "`keras-dml convert-weights`, and pass the result as `weights`."
        )
    if weights not in ("none", "auto", "imagenet", backbone.pretrained):
        _check_file(weights)


def _published(name, backbone, input_shape):
    try:
        # Keras tells of a download on stdout, which is for results.
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(sys.stderr),
        ):
            # The warning does not matter: convolutions fit any image size.
            warnings.filterwarnings("ignore", message="`input_shape` is undef")
            return backbone.builder(
                input_shape=input_shape, weights=backbone.pretrained
            )
    except (UsageError, RunError):
        raise
    except Exception as error:
        raise RunError(
            f"The ImageNet weights of {name!r} could not be downloaded: "
            f"{error} Download them elsewhere and pass the path as `weights`, "
            "train from random weights with `weights='none'`, or take a small "
            "network that needs none with `backbone='small_cnn'`."
        ) from error


def _check_file(weights):
    path = Path(os.path.expanduser(weights))
    if not path.name.endswith(SUFFIXES):
        raise UsageError(
            "`weights` must be `imagenet`, `none`, or the path of a "
            f"file ending in {', '.join(SUFFIXES)}. Received: {weights}"
        )
    if not path.is_file():
        raise UsageError(
            f"`weights` must name a file that exists. Received: {weights}. "
            "Correct the path, or choose `imagenet` or `none`."
        )
    if not path.name.endswith(SUFFIXES[0]) and _is_of_keras_3(path):
        raise UsageError(
            "`weights` in the format of Keras 3 must have a name that ends in "
            f"`.weights.h5`, by which Keras knows them. Received: {weights}. "
            "Rename the file."
        )


def _is_of_keras_3(path):
    """Returns whether a file is what `save_weights` of Keras 3 writes."""
    try:
        with h5py.File(path) as file:
            return {"layers", "_layer_checkpoint_dependencies"} & file.keys()
    except OSError:
        return False


def _load(model, path, name):
    # Keras may keep the random weights of a layer without an entry in the
    # file. NaN marks such layers.
    before = model.get_weights()
    floats = [one for one in model.weights if "float" in str(one.dtype)]
    for weight in floats:
        weight.assign(np.full(weight.shape, np.nan))
    try:
        if path.suffix == ".keras":
            saved = keras.saving.load_model(path, compile=False)
            model.set_weights(_backbone_of(saved).get_weights())
        else:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Skipping nested")
                nested = isinstance(model, NestedNetwork)
                (model.whole() if nested else model).load_weights(path)
        for weight in floats:
            if np.isnan(np.asarray(weight)).any():
                raise ValueError(f"it holds no usable {weight.path!r}.")
    # Damaged files raise errors of many kinds in Keras, zipfile and HDF5.
    except Exception as error:
        # The network may be the user's own.
        model.set_weights(before)
        raise UsageError(
            f"The weights in {path} do not fit the backbone {name!r}: "
            f"{_first_lines(error)} Choose the backbone the file was made "
            "with, or another file. Of an embedder, choose the `.keras` file."
        ) from error


def _backbone_of(model):
    """Returns the backbone of an embedder, or the model itself."""
    names = [layer.name for layer in model.layers]
    return model.get_layer("backbone") if "backbone" in names else model


def _first_lines(error):
    """Returns an error message of Keras without the values at its end."""
    text = " ".join(str(error).split(", value=")[0].split())
    return text[:400].rstrip(".") + "."
