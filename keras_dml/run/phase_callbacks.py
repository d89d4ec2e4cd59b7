"""Builds the callbacks of a phase from its section of the configuration."""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml import callbacks, distribute
from keras_dml.config import PhaseConfig, RunConfig
from keras_dml.console import logger
from keras_dml.data.manifest import Manifest
from keras_dml.models import forward_function
from keras_dml.roles import has_gallery, query_rows, reference_rows
from keras_dml.run.batches import evaluation_batches
from keras_dml.run.cached_features import CachedFeatures
from keras_dml.run.data import StageData
from keras_dml.run.loss_terms import heat_up, loss_head
from keras_dml.run.models import Models
from keras_dml.run.timing import Timing


class TimedTracing(keras.callbacks.Callback):
    """Counts the time until the first step is done as that of tracing."""

    def __init__(self, timing: Timing) -> None:
        super().__init__()
        self._timing = timing

    def on_train_begin(self, logs=None):
        self._timing.enter("tracing")

    def on_train_batch_end(self, batch, logs=None):
        if batch == 0:
            self._timing.enter("steps")


class TimedEvaluation(callbacks.RetrievalEvaluation):
    """Counts the time of each evaluation as that of validation.

    It also evaluates the last epoch of the tail of an early stopping: an epoch
    that nothing has evaluated is never the best one.
    """

    def __init__(
        self,
        timing: Timing,
        stopping: callbacks.EarlyStopping | None,
        *arguments: Any,
        **settings: Any,
    ):
        super().__init__(*arguments, **settings)
        self._timing = timing
        self._stopping = stopping

    def is_due(self, epoch: int) -> bool:
        stopping = self._stopping
        ends = (
            stopping is not None
            and stopping.tail_epoch is not None
            and epoch + 1 == stopping.tail_epoch + stopping.tail
        )
        return ends or super().is_due(epoch)

    def evaluate(self) -> dict[str, float]:
        with self._timing.part("validation"):
            return super().evaluate()


def phase_callbacks(
    config: RunConfig,
    phase: PhaseConfig,
    data: StageData,
    models: Models,
    *,
    batches: Callable[[int], Iterable[np.ndarray]],
    epochs: int,
    steps: int,
    timing: Timing,
    features: CachedFeatures | None = None,
) -> list[Any]:
    """Builds the callbacks of a phase, in the order in which they run.

    Args:
        config: The settled configuration.
        phase: The phase's section of it.
        data: Training and validation images of the stage.
        models: The embedder and the trainer.
        batches: Function of an epoch that returns the rows of its batches.
        epochs: Length of the phase.
        steps: Number of batches in an epoch.
        timing: `Timing` of the command.
        features: `CachedFeatures` of a network that does not train. Defaults
            to `None`.
    """
    monitor = f"val_{config.evaluation.monitor}"
    head = loss_head(config.loss)
    listed: list[Any] = [
        TimedTracing(timing),
        callbacks.TerminateOnNonFiniteLoss(),
    ]
    listed += head.callbacks(
        lambda epoch: (data.fit.targets(rows) for rows in batches(epoch)),
        logger.warning,
    )
    if phase.heat is not None:
        listed.append(heat_up(phase.heat))
    stopping = None
    if phase.stop_patience is not None:
        stopping = callbacks.EarlyStopping(
            monitor=monitor,
            mode="max",
            patience=phase.stop_patience,
            tail=phase.stop_tail,
            steps_per_epoch=steps,
            epochs=epochs,
        )
    if data.validation is not None:
        # The way back from the last epoch measures its network itself.
        measured = config.evaluation.select == "last" and bool(
            config.evaluation.interpolate
        )
        retrieval = TimedEvaluation(
            timing,
            stopping,
            # `predict` would embed every image on every replica.
            forward_function(features.head if features else models.embedder),
            **_parts(data.validation, config, features),
            gather=distribute.gather_rows,
            k=(1,),
            normalize=config.evaluation.normalize,
            every=min(config.evaluation.every or 1, epochs),
            epochs=None if measured else epochs,
        )
        health = callbacks.EmbeddingHealth(
            retrieval, head.proxies(models.trainer), warn=logger.warning
        )
        listed += [retrieval, health]
        if distribute.num_workers() > 1:
            # The next callbacks read the logs, and must decide the same on
            # all workers.
            listed.append(
                keras.callbacks.LambdaCallback(on_epoch_end=_logs_of_chief)
            )
    if phase.plateau is not None:
        listed.append(
            callbacks.ReduceLROnPlateau(
                monitor=monitor, mode="max", **phase.plateau.model_dump()
            )
        )
    if stopping is not None:
        listed.append(stopping)
    return listed


def replayed_drops(
    record: Mapping[str, Any], phase: int, one_epoch_late: bool
) -> list[keras.callbacks.Callback]:
    """Repeats the drops of the rates that an earlier stage recorded.

    Args:
        record: What the earlier stage recorded; empty without a replay.
        phase: Index of the phase that is about to train. It repeats the drops
            that were found in it.
        one_epoch_late: Whether each drop comes one epoch later.

    Returns:
        A list of one callback, or of none.
    """
    drops = record.get("drops", {})
    if isinstance(drops, list):
        # Version 0.1 had one plateau, and did not say in which phase.
        drops = {str(phase): {"epochs": drops, "factor": 0.1}}
    found = drops.get(str(phase), {"epochs": []})
    if not found["epochs"]:
        return []
    return [
        callbacks.LearningRateDrops(
            found["epochs"], found["factor"], author_off_by_one=one_epoch_late
        )
    ]


def tensorboard(folder: Path) -> list[keras.callbacks.Callback]:
    """Writes events of the training, where TensorBoard is installed.

    Args:
        folder: Where to write them.

    Returns:
        A list of one callback, or of none.
    """
    # TensorFlow 2.21 comes without TensorBoard, which writes the events.
    if not (distribute.is_chief() and find_spec("tensorboard")):
        return []
    return [keras.callbacks.TensorBoard(folder, write_graph=False)]


def _parts(
    validation: Manifest, config: RunConfig, features: CachedFeatures | None
) -> dict[str, Any]:
    """Returns batches of this worker's queries, and of a gallery if any."""

    def batches(rows: np.ndarray) -> Any:
        images = validation.select(rows)
        if features is not None:
            assert features.validation is not None
            return features.validation[rows], images.labels
        own = images.select(distribute.own_rows(len(images)))
        return evaluation_batches(own, config, again=True).map(
            lambda inputs, label: (inputs["image"], label)
        )

    parts = {"data": batches(query_rows(validation.role))}
    if has_gallery(validation.role):
        parts["references"] = batches(reference_rows(validation.role))
    return parts


def _logs_of_chief(epoch: int, logs: dict[str, Any] | None) -> None:
    if logs is not None:
        plain = {name: float(value) for name, value in logs.items()}
        logs.update(distribute.broadcast(plain))
