"""The embedder: from an image to a vector."""

import keras

from keras_dml.config.sections import ModelConfig
from keras_dml.errors import UsageError
from keras_dml.layers import (
    EmbeddingHead,
    GlobalAveragePlusMaxPooling2D,
    GlobalKMaxPooling2D,
    ImagePreprocessing,
    TokenPooling,
)
from keras_dml.models.backbone import Backbone
from keras_dml.models.backbones import get_backbone
from keras_dml.models.batch_norm import set_batch_norm_mode
from keras_dml.models.custom_backbone import custom_backbone
from keras_dml.models.precision import dtype_policy
from keras_dml.models.weights import build_with_weights

# What the optimizer's rules go by.
_RESERVED = {"head", "proxies", "logits", "boundaries", "memory"}


def build_embedder(
    config: ModelConfig,
    image_shape: tuple[int, int, int],
    normalize: bool = True,
    backbone: keras.Model | Backbone | None = None,
) -> keras.Model:
    """Builds the network from an image to its embedding.

    Layers: "preprocessing", "backbone" (a nested model), "pooling", "head",
    and "unit" when the embedding is normalized. Features of a map or of
    tokens are pooled as `config.pooling` says. The backbone computes under
    `config.policy`, all other layers in float32. Call
    `keras.utils.set_random_seed` first for the same weights every time.

    Args:
        config: The `model` section of a configuration.
        image_shape: Height, width and channels (1 or 3) of an image.
        normalize: Whether embeddings have length 1. Defaults to `True`.
        backbone: A network in the place of that of `config`: a Keras model
            that takes values in 0..255, or what `custom_backbone` makes of
            one. It keeps its weights unless `config.weights` names a file.
            Defaults to `None`.

    Input shape:
        Float32 `(batch, *image_shape)`, named "image", values in 0..255, RGB
        or grey.

    Output shape:
        Float32 `(batch, config.dim)`.

    Raises:
        UsageError: Unknown backbone, image of a size it does not take,
            weights that are missing or do not fit, or a pooling that the
            features have no use for.

    Example:

    ```python
    config = ModelConfig(backbone="small_cnn", dim=64)
    embedder = build_embedder(config, (28, 28, 1))
    embeddings = embedder.predict(np.zeros((8, 28, 28, 1)))
    ```
    """
    name = config.backbone
    if backbone is None:
        backbone = get_backbone(name)
    else:
        name = "the network given"
        if not isinstance(backbone, Backbone):
            backbone = custom_backbone(backbone)
    _check_image_shape(name, backbone, image_shape)
    image = keras.Input(image_shape, dtype="float32", name="image")
    x = ImagePreprocessing(
        backbone.preprocessing,
        rgb=backbone.rgb,
        scale=backbone.scale,
        offset=backbone.offset,
        name="preprocessing",
    )(image)
    with dtype_policy(config.policy):
        network = build_with_weights(
            name,
            x.shape[1:],
            config.weights,
            backbone=backbone,
            pooled=config.pooling == "none",
        )
    network = set_batch_norm_mode(network, config.batch_norm)
    x = network(x)
    _check_names(network)
    x = _pooling(config, name, backbone, x.shape)(x)
    x = _head(config)(x)
    if normalize:
        x = keras.layers.UnitNormalization(dtype="float32", name="unit")(x)
    return keras.Model(image, x, name="embedder")


def pooled_features(embedder: keras.Model) -> keras.Model:
    """The network from an image to the pooled features before the head.

    With pre-trained weights these are the baseline that training must beat.

    Args:
        embedder: Result of `build_embedder`.

    Returns:
        A model that shares the layers of `embedder`.
    """
    return keras.Model(embedder.inputs[0], embedder.get_layer("pooling").output)


def _check_image_shape(name, backbone, image_shape):
    sides = set(image_shape[:2])
    if backbone.fixed_size and sides != {backbone.image_size}:
        raise UsageError(
            f"The backbone {name!r} takes images of {backbone.image_size} "
            f"pixels only. Received: {image_shape[0]} x {image_shape[1]}. Set "
            f"`data.image_size` to {backbone.image_size}."
        )
    if min(sides) < backbone.min_image_size:
        raise UsageError(
            f"The backbone {name!r} needs images of at least "
            f"{backbone.min_image_size} pixels. Received: {image_shape[0]} x "
            f"{image_shape[1]}. Set `data.image_size` to "
            f"{backbone.min_image_size} or more, or choose `small_cnn`."
        )
    if image_shape[2] not in (1, 3):
        raise UsageError(
            "Images must have 1 or 3 channels. "
            f"Received: `image_shape`={image_shape}"
        )


def _check_names(network):
    for weight in network.weights:
        if weight.path.partition("/")[0] in _RESERVED:
            raise UsageError(
                f"The backbone has a variable {weight.path!r}, which the "
                "optimizer would take for one of another part of the trainer. "
                f"Rename the layer; reserved are {sorted(_RESERVED)}."
            )


def _pooling(config, name, backbone, feature_shape):
    """Float32, for float16 overflows in the sum over a large image."""
    arguments = {"dtype": "float32", "name": "pooling"}
    rank = len(feature_shape)
    if rank == 2 and config.pooling == "none":
        return keras.layers.Identity(**arguments)
    if rank == 3 and config.pooling != "none":
        return _token_pooling(config, name, backbone, feature_shape, arguments)
    if rank != 4 or config.pooling in ("none", "class_token"):
        raise _useless_pooling(config.pooling, name, rank)
    if config.pooling == "average":
        return keras.layers.GlobalAveragePooling2D(**arguments)
    if config.pooling == "max":
        return keras.layers.GlobalMaxPooling2D(**arguments)
    if config.pooling == "average_plus_max":
        return GlobalAveragePlusMaxPooling2D(**arguments)
    if None not in feature_shape[1:3]:
        positions = feature_shape[1] * feature_shape[2]
        if config.k > positions:
            raise UsageError(
                f"`model.k` must be at most {positions}, the number of "
                f"positions in the {feature_shape[1]} x {feature_shape[2]} "
                f"features of {name!r}. Received: {config.k}"
            )
    return GlobalKMaxPooling2D(config.k, **arguments)


def _token_pooling(config, name, backbone, feature_shape, arguments):
    if config.pooling == "class_token" and not backbone.class_token:
        raise UsageError(
            f"`model.pooling: class_token` needs a class token, which {name!r} "
            "has not. Choose average, max, k_max or average_plus_max."
        )
    tokens, prefix = feature_shape[1], backbone.prefix_tokens
    if tokens is not None and config.k > tokens - prefix:
        raise UsageError(
            f"`model.k` must be at most {tokens - prefix}, the number of "
            f"patches of {name!r}. Received: {config.k}"
        )
    return TokenPooling(config.pooling, prefix, config.k, **arguments)


def _useless_pooling(pooling, name, rank):
    gives = {
        2: "pooled features, which need `none`",
        3: "tokens, which need class_token, average, max, k_max or "
        "average_plus_max",
        4: "maps, which need average, max, k_max or average_plus_max",
    }.get(rank, f"features of {rank} dimensions, which no pooling takes")
    return UsageError(
        f"`model.pooling` does not fit {name!r}: it gives {gives}. "
        f"Received: {pooling!r}"
    )


def _head(config):
    none = config.normalization == "none"
    torch_bias = config.kernel_initializer == "uniform_fan_in"
    return EmbeddingHead(
        config.dim,
        layer_norm=config.layer_norm,
        normalization=None if none else config.normalization,
        use_bias=config.use_bias,
        kernel_initializer=config.kernel_initializer,
        bias_initializer="uniform_fan_in" if torch_bias else "zeros",
        name="head",
    )
