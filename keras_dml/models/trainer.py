"""The trainer: an embedder and what its loss takes."""

import keras

from keras_dml.config.sections import ModelConfig
from keras_dml.errors import UsageError
from keras_dml.layers import (
    CentreDistance,
    ClassBoundaries,
    CrossBatchMemory,
    Proxies,
    SampleAwareProxies,
    ScaledLogits,
)
from keras_dml.losses.proxy_repulsion import ProxyRepulsion
from keras_dml.losses.registry import INPUTS
from keras_dml.models.precision import dtype_policy

_REGULARIZERS = {
    "centre_distance": CentreDistance,
    "proxy_repulsion": ProxyRepulsion,
}


def build_trainer(
    embedder: keras.Model,
    config: ModelConfig,
    num_classes: int,
    takes: str = "logits",
    memory: CrossBatchMemory | None = None,
) -> keras.Model:
    """Builds the model that `fit` trains around an embedder.

    It shares the layers of the embedder up to "head", so that training it
    trains the embedder; "unit" is left out, for proxies and most losses
    normalize by themselves.

    Args:
        embedder: Result of `build_embedder`.
        config: The same configuration.
        num_classes: Number of classes in training.
        takes: What the loss takes, see `keras_dml.losses.INPUTS`. Defaults
            to `"logits"`.
        memory: `CrossBatchMemory` over the embeddings, for the loss
            `WithMemory`. Defaults to `None`.

    Input shape:
        Dict of "image", as the embedder takes it, and "label", int32
        `(batch,)`.

    Output shape:
        Float32, by `takes`:

        - logits or similarities `(batch, num_classes)`; with more than one
          centre, which the loss must combine before it scales, similarities
          `(batch, num_classes, centres)`;
        - weighted similarities, the output of `SampleAwareProxies`;
        - embeddings `(batch, config.dim)`, of length 1 if they are unit
          embeddings, with 2 columns more for boundaries and 1 for a memory.

    Raises:
        UsageError: If `takes` or an argument of a layer is unknown, or a
            memory is given to a loss that takes no embeddings.

    Example:

    ```python
    trainer = build_trainer(embedder, config, num_classes=10)
    trainer.compile("adam", keras_dml.losses.NormalizedSoftmax())
    trainer.fit({"image": images, "label": labels}, labels)
    ```
    """
    if takes not in INPUTS:
        raise UsageError(
            f"`takes` must be one of {', '.join(INPUTS)}. "
            f"Received: takes={takes!r}"
        )
    if memory is not None and takes != "embeddings":
        raise UsageError(
            "A memory is for losses that take embeddings. Received: a memory "
            f"and takes={takes!r}"
        )
    image = embedder.inputs[0]
    label = keras.Input((), dtype="int32", name="label")
    x = embedder.get_layer("head").output
    if takes in ("logits", "similarities"):
        x = _proxies(config, num_classes)(x)
        if takes == "logits" and config.proxies.centres == 1:
            x = ScaledLogits(
                scale=config.scale, use_bias=config.logits_bias, name="logits"
            )(x)
    elif takes == "weighted_similarities":
        x = _sample_aware_proxies(config, num_classes)([x, label])
    elif takes == "embeddings_and_boundaries":
        x = ClassBoundaries(
            num_classes, initial=config.boundary, name="boundaries"
        )([x, label])
    elif takes == "unit_embeddings":
        x = keras.layers.UnitNormalization(dtype="float32", name="unit")(x)
    elif memory is not None:
        x = memory([x, label])
    # Keras scales the loss of a model whose own policy is `mixed_float16`.
    with dtype_policy(config.policy):
        return keras.Model({"image": image, "label": label}, x, name="trainer")


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
