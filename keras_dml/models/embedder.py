"""Builds and loads the embedder, the network from an image to a vector."""

import numbers
from pathlib import Path
from typing import Any

import keras

from keras_dml.checks import one_of, require
from keras_dml.errors import RunError, UsageError, reason_of
from keras_dml.layers import EmbeddingHead, ImagePreprocessing
from keras_dml.models.backbone import Backbone, custom_backbone
from keras_dml.models.backbones import get_backbone
from keras_dml.models.batch_norm import (
    BATCH_NORM_MODES,
    set_batch_norm_mode,
)
from keras_dml.models.heads import LAYERS, OF_EMBEDDINGS
from keras_dml.models.pooling import pooling_layer
from keras_dml.models.precision import dtype_policy
from keras_dml.models.weights import build_with_weights

# Optimizers and callbacks find the parts of a trainer by these names.
_RESERVED = {"memory", *OF_EMBEDDINGS, *LAYERS}


def build_embedder(
    backbone: str | keras.Model | Backbone,
    image_shape: tuple[int, int, int],
    *,
    dim: int = 128,
    pooling: str = "max",
    k: int = 1,
    weights: str | None = "auto",
    batch_norm: str = "train",
    policy: str = "float32",
    normalize: bool = True,
    any_size: bool = False,
    **head: Any,
) -> keras.Model:
    """Builds the network from an image to its embedding.

    Its layers are "preprocessing", "backbone" (a nested model), "pooling",
    "head", and "unit" if `normalize` is true. The backbone computes under
    `policy`, all other layers in float32. Call
    `keras.utils.set_random_seed` first to get the same weights every time.

    Args:
        backbone: One of `list_backbones()`, `"hub:PRESET"` for a network of
            keras-hub, a Keras model that takes values in 0..255, or the
            result of `custom_backbone`. A given model keeps its weights
            unless `weights` names a file.
        image_shape: Height, width, which is as much, and channels (1 or 3)
            of an image.
        dim: Size of the embedding. Defaults to `128`.
        pooling: `"average"`, `"max"`, `"k_max"`, `"average_plus_max"`, or for
            maps `"generalized_mean"` and for tokens `"class_token"`; `"none"`
            for a network that pools its features. Defaults to `"max"`.
        k: Number of activations that `"k_max"` averages. Defaults to `1`.
        weights: See `build_with_weights`. Defaults to `"auto"`, the published
            weights if the backbone has some, else random weights.
        batch_norm: See `set_batch_norm_mode`. Defaults to `"train"`.
        policy: Dtype policy of the backbone; a given model keeps its own.
            Defaults to `"float32"`.
        normalize: Whether to scale embeddings to length 1. Defaults to `True`.
        any_size: Whether the backbone also takes images of other sizes, for
            `with_image_size`. Defaults to `False`.
        **head: Further arguments of `EmbeddingHead`, such as
            `normalization="l2"`.

    Input shape:
        Float32 `(batch, *image_shape)`, named "image", values in 0..255, RGB
        or gray.

    Output shape:
        Float32 `(batch, dim)`.

    Raises:
        UsageError: If the backbone is unknown, does not take images of this
            size or of any size, has no such weights, or returns features
            that `pooling` cannot take; if images are not square or have their
            channels first, or there is no such `batch_norm`.

    Example:

    ```python
    embedder = build_embedder("small_cnn", (28, 28, 1), dim=64)
    embeddings = embedder.predict(np.zeros((8, 28, 28, 1)))
    ```
    """
    one_of("batch_norm", batch_norm, BATCH_NORM_MODES)
    _check_data_format()
    name, backbone = _named(backbone)
    _check_image_shape(name, backbone, image_shape)
    if any_size and (backbone.fixed_size or not backbone.any_size):
        raise UsageError(
            f"`any_size` needs a backbone whose layers fit every image size. "
            f"Received: {name!r}. Leave it out, and train at the image size "
            "of the embedder."
        )
    image = keras.Input(image_shape, dtype="float32", name="image")
    x = ImagePreprocessing(
        backbone.preprocessing,
        rgb=backbone.rgb,
        scale=backbone.scale,
        offset=backbone.offset,
        name="preprocessing",
    )(image)
    with dtype_policy(policy):
        shape, pooled = x.shape[1:], pooling == "none"
        if any_size:
            shape = (None, None, shape[-1])
        network = build_with_weights(
            name, shape, weights, backbone=backbone, pooled=pooled
        )
    network = set_batch_norm_mode(network, batch_norm)
    x = network(x)
    _check_names(network)
    x = pooling_layer(pooling, k, name, backbone, x.shape)(x)
    x = EmbeddingHead(dim, **head, name="head")(x)
    if normalize:
        x = keras.layers.UnitNormalization(dtype="float32", name="unit")(x)
    return keras.Model(image, x, name="embedder")


def load_embedder(path: str | Path) -> keras.Model:
    """Loads an embedder from a `.keras` file.

    Args:
        path: The file, such as the `embedder.keras` of a run.

    Raises:
        RunError: If the file is missing or damaged, needs what is not
            installed, or is not a model of images and vectors.

    Example:

    ```python
    embedder = load_embedder("runs/digits-norm_softmax-0/embedder.keras")
    ```
    """
    # Keras needs the layers of this package, which its import registered.
    try:
        if not Path(path).is_file():
            raise FileNotFoundError("there is no such file")
        embedder = keras.saving.load_model(path, compile=False)
        shapes = embedder.input_shape, embedder.output_shape
        ranks = [len(shape) for shape in shapes]
        if ranks != [4, 2] or None in shapes[0][1:]:
            raise ValueError(f"it maps {shapes[0]} to {shapes[1]}")
        if shapes[0][1] != shapes[0][2]:
            raise ValueError(f"its images are not square, but {shapes[0]}")
    # Damaged files raise errors of many kinds in Keras, zipfile and HDF5.
    except Exception as error:
        raise RunError(
            f"{path} does not load as an embedder: {reason_of(error)}. "
            "Restore it, or train the run again."
        ) from error
    return embedder


def _named(backbone):
    if isinstance(backbone, str):
        return backbone, get_backbone(backbone)
    if not isinstance(backbone, Backbone):
        backbone = custom_backbone(backbone)
    return "the given network", backbone


def _check_data_format():
    found = keras.config.image_data_format()
    require(
        found == "channels_last",
        "keras.config.image_data_format()",
        "'channels_last'",
        found,
        'Call `keras.config.set_image_data_format("channels_last")` first.',
    )


def _check_image_shape(name, backbone, image_shape):
    integers = all(isinstance(one, numbers.Integral) for one in image_shape)
    require(
        integers and len(image_shape) == 3,
        "image_shape",
        "three integers, the height, width and channels of an image",
        image_shape,
        "For images of several sizes, give one of them and `any_size=True`.",
    )
    height, width, channels = image_shape
    size = backbone.image_size
    if height != width:
        raise UsageError(
            "`image_shape` must be that of square images. Received: "
            f"image_shape={image_shape}. Give it as many rows as columns."
        )
    if backbone.fixed_size and height != size:
        raise UsageError(
            f"The backbone {name!r} takes images of {size} pixels only. "
            f"Received: {height} x {width}. Set the image size to {size}."
        )
    least = backbone.min_image_size
    if height < least:
        other = ", or choose `small_cnn`" * (name != "small_cnn")
        raise UsageError(
            f"The backbone {name!r} needs images of at least {least} pixels. "
            f"Received: {height} x {width}. Set the image size to {least} or "
            f"more{other}."
        )
    if channels not in (1, 3):
        raise UsageError(
            "Images must have 1 or 3 channels. "
            f"Received: image_shape={image_shape}"
        )


def _check_names(network):
    for weight in network.weights:
        if weight.path.partition("/")[0] in _RESERVED:
            raise UsageError(
                f"The backbone has a variable {weight.path!r}, which the "
                "optimizer would take for a variable of another part of the "
                "trainer. Rename the layer. Reserved names: "
                f"{sorted(_RESERVED)}."
            )
