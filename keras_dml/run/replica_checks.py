"""Raises, before training, if settings do not work on several replicas."""

import keras

from keras_dml import losses
from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.optimizers import inner_optimizers
from keras_dml.run.batches import make_sampler
from keras_dml.run.loss_terms import loss_head

ACCUMULATION = "gradient_accumulation_steps"


def check_batches(manifest: Manifest, config: RunConfig, count: int) -> None:
    """Raises if replicas cannot share batches equally, in whole groups.

    Args:
        manifest: The training images.
        config: The settled configuration.
        count: Number of replicas.

    Raises:
        UsageError: If the batch size does not fit; suggests sizes that do.
    """
    if count == 1:
        return
    settings = config.sampling
    size = len(make_sampler(manifest, config)(0)[0])
    group = settings.rows_together
    least = count * group
    if size % least == 0:
        return
    below, above = size // least * least, -(-size // least) * least
    fitting = " or ".join(str(one) for one in (below, above) if one)
    groups = f" with {group} images of each class" if group > 1 else ""
    raise UsageError(
        f"`sampling.batch_size` must divide by the {count} devices{groups}. "
        f"Received: a batch of {size} images. Sizes that do are the multiples "
        f"of {least}, such as {fitting}"
        + (
            f" (`sampling.classes` must be a multiple of {count})."
            if settings.by_class
            else "."
        )
    )


def check_settings(config: RunConfig, replicas: int) -> None:
    """Raises if settings would silently fail on several replicas.

    Args:
        config: A configuration.
        replicas: Number of replicas.

    Raises:
        UsageError: If gradients are accumulated
            (https://github.com/keras-team/keras/issues/20582), a loss of
            another package compares rows, or batch normalization would be
            synchronized inside of a loop.
    """
    if replicas == 1:
        return
    if config.sampling.embed_batch and config.model.batch_norm == "train":
        raise UsageError(
            "`sampling.embed_batch` on several devices needs batch "
            "normalization that does not train. Received: "
            f"sampling.embed_batch={config.sampling.embed_batch}, "
            f"model.batch_norm='train', {replicas} devices. Set "
            "`model.batch_norm` to 'frozen', or use one device."
        )
    for term in config.loss:
        if term.name not in losses.LOSSES:
            loss_head([term]).check_replicas(term.name, replicas)
    for name in ("backbone", "head", "proxies"):
        steps = getattr(config.optimizer, name).arguments.get(ACCUMULATION)
        if steps not in (None, 1):
            raise _accumulation(f"`optimizer.{name}`", steps, replicas)


def check_trainer(trainer: keras.Model) -> None:
    """Raises if a compiled model cannot train on several replicas.

    Args:
        trainer: A compiled model.

    Raises:
        UsageError: If the model belongs to a strategy of several replicas,
            and is compiled by XLA, accumulates gradients or scales its loss.
    """
    if keras.backend.backend() != "tensorflow":
        return
    replicas = trainer.distribute_strategy.num_replicas_in_sync
    if replicas < 2:
        return
    if trainer.jit_compile is True:
        raise UsageError(
            "`jit_compile=True` does not work on several replicas, where XLA "
            f"cannot compile their exchange. Received: {replicas} replicas. "
            '`jit_compile="auto"` leaves it out there; or use one device.'
        )
    if isinstance(trainer.optimizer, keras.optimizers.LossScaleOptimizer):
        raise UsageError(
            "`mixed_float16` is not safe on several replicas: when one of them "
            "overflows, it can destroy the weights. Received: a "
            f"`LossScaleOptimizer`, {replicas} replicas. Use `mixed_bfloat16` "
            "or one device."
        )
    for optimizer in inner_optimizers(trainer.optimizer):
        steps = optimizer.gradient_accumulation_steps
        if steps not in (None, 1):
            raise _accumulation(f"`{optimizer.name}`", steps, replicas)


def _accumulation(where: str, steps: int, replicas: int) -> UsageError:
    return UsageError(
        "Gradients cannot be accumulated on several replicas "
        "(https://github.com/keras-team/keras/issues/20582). Received: "
        f"{where} with `{ACCUMULATION}={steps}`, {replicas} replicas. Use "
        "more replicas or a larger batch instead, or one device."
    )
