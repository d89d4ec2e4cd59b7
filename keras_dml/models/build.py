"""The embedder, and the trainer around it."""

import keras

from keras_dml.config.sections import ModelConfig
from keras_dml.errors import UsageError
from keras_dml.layers import (
    CentreDistance,
    ClassBoundaries,
    EmbeddingHead,
    GlobalAveragePlusMaxPooling2D,
    GlobalKMaxPooling2D,
    ImagePreprocessing,
    Proxies,
    SampleAwareProxies,
    ScaledLogits,
)
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.margin import Margin
from keras_dml.losses.proxy_isa import ProxyISA
from keras_dml.losses.proxy_repulsion import ProxyRepulsion
from keras_dml.losses.registry import LOSSES
from keras_dml.models.backbones import get_backbone
from keras_dml.models.batch_norm import set_batch_norm_mode
from keras_dml.models.precision import dtype_policy
from keras_dml.models.weights import build_with_weights

_REGULARIZERS = {
    "centre_distance": CentreDistance,
    "proxy_repulsion": ProxyRepulsion,
}


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


def build_trainer(
    embedder: keras.Model,
    config: ModelConfig,
    num_classes: int,
    proxies: bool = True,
    boundaries: bool = False,
    scaled: bool = True,
    sample_aware: bool = False,
) -> keras.Model:
    """Builds the model that `fit` trains around an embedder.

    It shares the layers of the embedder up to "head", so that training it
    trains the embedder; "unit" is left out, for the proxies normalize by
    themselves.

    Args:
        embedder: Result of `build_embedder`.
        config: The same configuration.
        num_classes: Number of classes in training.
        proxies: Whether the loss compares with proxies. `False` for pair
            losses, which take the embeddings. Defaults to `True`.
        boundaries: Whether the loss takes a learned boundary for each class,
            in a layer "boundaries", instead. Defaults to `False`.
        scaled: Whether similarities to proxies are scaled to logits, for a
            loss that does not scale them by itself. Defaults to `True`.
        sample_aware: Whether the proxies weigh every row, for Proxy-ISA.
            Defaults to `False`.

    Input shape:
        Dict of "image", as the embedder takes it, and "label", int32
        `(batch,)`.

    Output shape:
        Float32 logits `(batch, num_classes)`; with more than one centre,
        which the loss must combine before it scales, float32 similarities
        `(batch, num_classes, centres)`; with sample-aware proxies, cosines
        and weights `(batch, 2, num_classes)`; without proxies, float32
        embeddings `(batch, config.dim)`, which pair losses normalize by
        themselves, or `(batch, config.dim + 2)` with boundaries.

    Example:

    ```python
    trainer = build_trainer(embedder, config, num_classes=10)
    trainer.compile("adam", keras_dml.losses.NormalizedSoftmax())
    trainer.fit({"image": images, "label": labels}, labels)
    ```
    """
    image = embedder.inputs[0]
    label = keras.Input((), dtype="int32", name="label")
    x = embedder.get_layer("head").output
    if sample_aware:
        x = _sample_aware_proxies(config, num_classes)([x, label])
    elif proxies:
        x = _proxies(config, num_classes)(x)
        if scaled and config.proxies.centres == 1:
            x = ScaledLogits(
                scale=config.scale, use_bias=config.logits_bias, name="logits"
            )(x)
    elif boundaries:
        x = ClassBoundaries(num_classes, name="boundaries")([x, label])
    # Keras scales the loss of a model whose own policy is `mixed_float16`.
    with dtype_policy(config.policy):
        return keras.Model({"image": image, "label": label}, x, name="trainer")


def uses_proxies(loss: str) -> bool:
    """Whether the loss of that name compares with proxies.

    The others compare the embeddings of a batch with each other.

    Args:
        loss: A key of `keras_dml.losses.LOSSES`.

    Example:

    >>> uses_proxies("proxy_nca")
    True
    """
    return issubclass(LOSSES.get(loss, LogitsLoss), LogitsLoss)


def uses_boundaries(loss: str) -> bool:
    """Whether the loss of that name learns a boundary for each class.

    Args:
        loss: A key of `keras_dml.losses.LOSSES`.

    Example:

    >>> uses_boundaries("margin")
    True
    """
    return LOSSES.get(loss) is Margin


def scales_similarities(loss: str) -> bool:
    """Whether the loss of that name scales similarities to proxies by itself.

    Args:
        loss: A key of `keras_dml.losses.LOSSES`.

    Example:

    >>> scales_similarities("proxy_anchor")
    True
    """
    return getattr(LOSSES.get(loss), "scales_similarities", False)


def uses_sample_awareness(loss: str) -> bool:
    """Whether the loss of that name takes a weight for every row and proxy.

    Args:
        loss: A key of `keras_dml.losses.LOSSES`.

    Example:

    >>> uses_sample_awareness("proxy_isa")
    True
    """
    return LOSSES.get(loss) is ProxyISA


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


def _proxies(config, num_classes):
    section = config.proxies
    regularizer = None
    if section.regularizer != "none":
        regularizer = _with_arguments(
            "regularizer_arguments",
            _REGULARIZERS[section.regularizer],
            section.regularizer_arguments,
        )
    return Proxies(
        num_classes,
        metric=section.metric,
        centres=section.centres,
        unit_proxies=section.unit,
        initializer=section.initializer,
        regularizer=regularizer,
        name="proxies",
    )


def _sample_aware_proxies(config, num_classes):
    return _with_arguments(
        "sample_aware",
        SampleAwareProxies,
        {
            **config.proxies.sample_aware,
            "num_classes": num_classes,
            "initializer": config.proxies.initializer,
            "name": "proxies",
        },
    )


def _with_arguments(key, cls, arguments):
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`model.proxies.{key}`: {error}") from error


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
