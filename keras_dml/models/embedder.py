"""The embedder: from an image to a vector."""

import keras

from keras_dml.config.sections import ModelConfig
from keras_dml.errors import UsageError
from keras_dml.layers import (
    EmbeddingHead,
    GlobalAveragePlusMaxPooling2D,
    GlobalKMaxPooling2D,
    ImagePreprocessing,
)
from keras_dml.models.backbones import get_backbone
from keras_dml.models.batch_norm import set_batch_norm_mode
from keras_dml.models.precision import dtype_policy
from keras_dml.models.weights import build_with_weights


def build_embedder(
    config: ModelConfig,
    image_shape: tuple[int, int, int],
    normalize: bool = True,
) -> keras.Model:
    """Builds the network from an image to its embedding.

    Layers: "preprocessing", "backbone" (a nested model), "pooling", "head",
    and "unit" when the embedding is normalized. The backbone computes under
    `config.policy`, all other layers in float32. Call
    `keras.utils.set_random_seed` first for the same weights every time.

    Args:
        config: The `model` section of a configuration.
        image_shape: Height, width and channels (1 or 3) of an image.
        normalize: Whether embeddings have length 1. Defaults to `True`.

    Input shape:
        Float32 `(batch, *image_shape)`, named "image", values in 0..255, RGB
        or grey.

    Output shape:
        Float32 `(batch, config.dim)`.

    Raises:
        UsageError: Unknown backbone, image too small for it, or weights that
            are missing or do not fit.

    Example:

    ```python
    config = ModelConfig(backbone="small_cnn", dim=64)
    embedder = build_embedder(config, (28, 28, 1))
    embeddings = embedder.predict(np.zeros((8, 28, 28, 1)))
    ```
    """
    backbone = get_backbone(config.backbone)
    _check_image_shape(config.backbone, backbone, image_shape)
    image = keras.Input(image_shape, dtype="float32", name="image")
    x = ImagePreprocessing(
        backbone.preprocessing, rgb=backbone.rgb, name="preprocessing"
    )(image)
    with dtype_policy(config.policy):
        network = build_with_weights(
            config.backbone, x.shape[1:], config.weights
        )
    network = set_batch_norm_mode(network, config.batch_norm)
    x = _pooling(config, network.output_shape)(network(x))
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
    if min(image_shape[:2]) < backbone.min_image_size:
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


def _pooling(config, feature_shape):
    """Float32, for float16 overflows in the sum over a large image."""
    arguments = {"dtype": "float32", "name": "pooling"}
    if config.pooling == "average":
        return keras.layers.GlobalAveragePooling2D(**arguments)
    if config.pooling == "max":
        return keras.layers.GlobalMaxPooling2D(**arguments)
    if config.pooling == "average_plus_max":
        return GlobalAveragePlusMaxPooling2D(**arguments)
    positions = feature_shape[1] * feature_shape[2]
    if config.k > positions:
        raise UsageError(
            f"`model.k` must be at most {positions}, the number of positions "
            f"in the {feature_shape[1]} x {feature_shape[2]} features of "
            f"{config.backbone!r}. Received: {config.k}"
        )
    return GlobalKMaxPooling2D(config.k, **arguments)


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
