"""The trainer: an embedder and what its loss takes."""

import math

import keras

from keras_dml.config.sections import ModelConfig
from keras_dml.errors import UsageError
from keras_dml.layers import (
    CenterDistance,
    ClassBoundaries,
    CrossBatchMemory,
    Proxies,
    SampleAwareProxies,
    SampledProxies,
    ScaledLogits,
)
from keras_dml.losses.registry import INPUTS
from keras_dml.models.precision import dtype_policy
from keras_dml.regularizers import ProxyRepulsion

_REGULARIZERS = {
    "centre_distance": CenterDistance,
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
          `(batch, num_classes, centres)`; with `config.proxies.sample`, of
          that share of the classes, at least those of a batch;
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
    if config.proxies.sample is not None:
        _check_sample(config, takes)
    image = embedder.inputs[0]
    label = keras.Input((), dtype="int32", name="label")
    x = embedder.get_layer("head").output
    if takes in ("logits", "similarities"):
        if config.proxies.sample is None:
            x = _proxies(config, num_classes)(x)
        else:
            x = _sampled_proxies(config, num_classes)([x, label])
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


def _sampled_proxies(config, num_classes):
    section = config.proxies
    size = max(
        math.ceil(section.sample * num_classes), section.sample_at_least or 1
    )
    return SampledProxies(
        num_classes,
        sample_size=min(size, num_classes),
        metric=section.metric,
        centres=section.centres,
        unit_proxies=section.unit,
        initializer=section.initializer,
        name="proxies",
    )


def _check_sample(config, takes):
    """Refuses what would need the proxies of all classes at every step."""
    sample = config.proxies.sample
    refused = {
        "a loss on logits or similarities": takes
        not in ("logits", "similarities"),
        "`model.proxies.regularizer: none`": (
            config.proxies.regularizer != "none"
        ),
        "`model.logits_bias: false`": config.logits_bias,
        "another `model.policy` than mixed_float16, such as mixed_bfloat16": (
            config.policy == "mixed_float16"
        ),
    }
    for need, missing in refused.items():
        if missing:
            raise UsageError(
                f"`model.proxies.sample` needs {need}: a step sees the "
                f"proxies of its sample alone. Received: sample={sample}, "
                f"regularizer={config.proxies.regularizer!r}, "
                f"logits_bias={config.logits_bias}, "
                f"policy={config.policy!r}, a loss that takes {takes}"
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
