"""The models of a run, built from its configuration."""

from dataclasses import dataclass

import keras

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.models import build_embedder, build_trainer
from keras_dml.models.batch_norm import synchronize_batch_norm
from keras_dml.run.compiling import build_memory, loss_input


@dataclass(frozen=True)
class Models:
    """The embedder, and the trainer that shares its layers."""

    embedder: keras.Model
    trainer: keras.Model


def build_models(config: RunConfig, num_classes: int) -> Models:
    """Builds fresh models; the same seed gives the same weights."""
    keras.utils.set_random_seed(config.seed)
    embedder = build_embedder(
        config.model,
        config.data.image_shape,
        normalize=config.evaluation.normalize,
    )
    trainer = build_trainer(
        embedder,
        config.model,
        num_classes,
        takes=loss_input(config.loss),
        memory=build_memory(config.loss),
    )
    if distribute.num_replicas() > 1:
        synchronize_batch_norm(trainer)
    return Models(embedder, trainer)
