"""Builds the models of a run from its configuration."""

import dataclasses
from dataclasses import dataclass

import keras

from keras_dml import distribute
from keras_dml.config import LossConfig, ModelConfig, RunConfig
from keras_dml.errors import UsageError
from keras_dml.models import (
    HeadOptions,
    build_embedder,
    build_trainer,
    synchronize_batch_norm,
)
from keras_dml.regularizers.registry import PROXY_REGULARIZERS
from keras_dml.run.loss_terms import (
    build_distillation,
    build_memory,
    build_moments,
    loss_head,
    needs_step,
)


@dataclass(frozen=True)
class Models:
    """Holds the embedder, and the trainer that shares its layers."""

    embedder: keras.Model
    trainer: keras.Model


def build_models(
    config: RunConfig, num_classes: int, teacher_dim: int | None = None
) -> Models:
    """Builds fresh models; the same seed gives the same weights.

    Args:
        config: The settled configuration.
        num_classes: Number of classes in training.
        teacher_dim: Size of the teacher's embeddings. Defaults to `None`, no
            teacher.

    Raises:
        UsageError: If settings of the model contradict each other.
    """
    keras.utils.set_random_seed(config.seed)
    model = config.model
    torch_bias = model.kernel_initializer == "uniform_fan_in"
    embedder = build_embedder(
        model.backbone,
        config.data.image_shape,
        dim=model.dim,
        pooling=model.pooling,
        k=model.k,
        weights=model.weights,
        batch_norm=model.batch_norm,
        policy=model.policy,
        normalize=config.evaluation.normalize,
        any_size=config.data.has_other_sizes,
        layer_norm=model.layer_norm,
        normalization=(
            None if model.normalization == "none" else model.normalization
        ),
        use_bias=model.use_bias,
        kernel_initializer=model.kernel_initializer,
        bias_initializer="uniform_fan_in" if torch_bias else "zeros",
    )
    options = head_options(model, config.loss)
    if config.distillation is not None and teacher_dim is not None:
        options = dataclasses.replace(
            options,
            distillation=build_distillation(
                config.distillation, model.prefixes
            ),
            teacher_dim=teacher_dim,
        )
    trainer = build_trainer(
        embedder,
        num_classes,
        loss_head(config.loss),
        options,
        model.policy,
        config.data.train_shape[0],
        config.sampling.embed_batch,
        trains_on_features(config),
    )
    if distribute.num_replicas() > 1:
        synchronize_batch_norm(trainer)
    return Models(embedder, trainer)


def trains_on_features(config: RunConfig) -> bool:
    """Whether the network stays as it is, so that its features can be kept.

    Views of an image differ in a batch, and a cached one is of an epoch.
    """
    if config.sampling.kind == "views":
        return False
    return distribute.num_replicas() == 1 and all(
        phase.freeze == "all" and not phase.refresh_bn
        for stage in config.stages
        for phase in stage.phases
    )


def check_whitening(model: ModelConfig) -> None:
    """Raises if a head cannot start as the whitening that it shall be.

    Raises:
        UsageError: If it has nothing to subtract the mean with.
    """
    subtracts = model.use_bias or model.normalization == "batch_norm"
    if model.whitening and not subtracts:
        raise UsageError(
            "`model.whitening` must be [] without `model.use_bias`: a "
            f"whitening subtracts a mean. Received: {model.whitening}"
        )


def head_options(model: ModelConfig, loss: list[LossConfig]) -> HeadOptions:
    """Converts the settings of the layers between embedding and loss.

    Args:
        model: The section `model` of a configuration.
        loss: The section `loss`.

    Raises:
        UsageError: If a regularizer, a memory or moments cannot be built.
    """
    section = model.proxies
    try:
        regularizer = None
        if section.regularizer != "none":
            regularizer = PROXY_REGULARIZERS[section.regularizer](
                **section.regularizer_arguments
            )
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"`model.proxies.regularizer_arguments`: {error}"
        ) from error
    return HeadOptions(
        proxies={
            "metric": section.metric,
            "centers": section.centers,
            "unit_proxies": section.unit,
            "initializer": section.initializer,
            "regularizer": regularizer,
        },
        sample=section.sample,
        sample_at_least=section.sample_at_least or 1,
        sample_aware=section.sample_aware,
        scale=model.scale,
        logits_bias=model.logits_bias,
        boundary=model.boundary,
        memory=build_memory(loss),
        moments=build_moments(loss),
        step=needs_step(loss),
        prefixes=model.prefixes,
    )
