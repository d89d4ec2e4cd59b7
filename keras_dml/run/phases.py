"""Trains the stages and phases of a run, from its start or a checkpoint."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import PhaseConfig, RunConfig, StageConfig
from keras_dml.console import logger
from keras_dml.distribute.worker_fit import repair_fit
from keras_dml.errors import RunError, UsageError
from keras_dml.optimizers import group_table
from keras_dml.run.batches import class_groups, make_sampler, train_batches
from keras_dml.run.cached_features import CachedFeatures
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.compiling import compile_for, unfreeze
from keras_dml.run.data import StageData
from keras_dml.run.folder import RunFolder
from keras_dml.run.interpolation import interpolate
from keras_dml.run.models import Models
from keras_dml.run.optimizer_lines import optimizer_lines
from keras_dml.run.phase_callbacks import (
    phase_callbacks,
    replayed_drops,
    tensorboard,
)
from keras_dml.run.progress import TrainingProgress
from keras_dml.run.recorder import RunRecorder, RunState
from keras_dml.run.refit import is_refit, may_refit
from keras_dml.run.replica_checks import check_trainer
from keras_dml.run.request import Request
from keras_dml.run.start import (
    StartFeatures,
    class_similarity,
    refresh,
    renew_class_means,
)


class StageTrainer:
    """Trains one stage, phase after phase.

    Args:
        config: The settled configuration.
        stage: The stage's section of it.
        data: Training and validation images of the stage.
        models: Freshly built models.
        folder: The run folder.
        state: The state of the run; changed in place.
        request: `Request` of the command. Defaults to `None`, one of its own.
        image_seconds: Seconds to embed a validation image, for the time that
            is expected after the first steps; `None` logs none. Defaults to
            `0.0`.
        features: `CachedFeatures` of a network that does not train. Defaults
            to `None`.
        known: `StartFeatures`, which keeps those of the interpolation.
            Defaults to `None`, new ones.
    """

    def __init__(
        self,
        config: RunConfig,
        stage: StageConfig,
        data: StageData,
        models: Models,
        folder: RunFolder,
        state: RunState,
        request: Request | None = None,
        image_seconds: float | None = 0.0,
        features: CachedFeatures | None = None,
        known: StartFeatures | None = None,
    ) -> None:
        self.config = config
        self.stage = stage
        self.data = data
        self.models = models
        self.folder = folder
        self.state = state
        self.request = request or Request()
        self.sampler: Callable[[int], Any] = make_sampler(
            data.fit, config, class_similarity(models, data, config)
        )
        self.steps = len(self.sampler(0))
        monitor = f"val_{config.evaluation.monitor}"
        self.monitor = None if data.validation is None else monitor
        self._image_seconds = image_seconds
        self._features = features
        self._known = known
        # What the kept network makes of the validation images.
        self.validated: np.ndarray | None = None
        self._replayed = state.records[stage.replay] if stage.replay else {}
        self._drops = self._replayed
        if is_refit(config, state) and not stage.replay:
            self._drops = state.records[config.stages[-1].name]

    def run(self) -> None:
        """Trains the remaining phases, then sets `models` to what is kept."""
        if self.state.step >= self.steps:
            raise RunError(
                f"The run stopped after step {self.state.step} of an epoch. "
                f"Received: images for {self.steps} steps. Restore the images, "
                "or choose another `output`."
            )
        if self.state.phase or self.state.epoch or self.state.step:
            last = load_checkpoint(self.folder.last_checkpoint)
            last.restore("model", self.models.trainer.variables)
        while self.state.phase < len(self.stage.phases):
            if not self.state.phase_done:
                self._run_phase(self.stage.phases[self.state.phase])
            self._finish_phase()
        keeps_best = self.config.evaluation.select == "best"
        if keeps_best and self.state.best is not None:
            best = load_checkpoint(self.folder.best_checkpoint)
            best.restore("model", self.models.trainer.variables)
        if self.config.evaluation.interpolate:
            start = load_checkpoint(
                self.folder.start_checkpoint(self.state.stage)
            )
            with self.request.timing.part("choice"):
                choice = interpolate(
                    self.models.embedder,
                    start.values["embedder"],
                    self.data,
                    self.config,
                    self._known,
                )
            self.state.interpolation = choice.record
            self.validated = choice.rows
            self.models = Models(choice.embedder, self.models.trainer)

    def _run_phase(self, phase: PhaseConfig) -> None:
        trainer, state = self.models.trainer, self.state
        epochs = self._epochs(phase)
        started = state.epoch > 0 or state.step > 0
        if not started and phase.refresh_bn:
            refresh(self.models, self.data.fit, self.config, phase.refresh_bn)
            if state.phase == 0:
                renew_class_means(self.models, self.data.fit, self.config)
        groups, planned = class_groups(self.data.fit, self.config), epochs
        if is_refit(self.config, state):
            # It ends where the training that it repeats did, early or not.
            first = self.config.stages[-1].phases[state.phase]
            planned = first.epochs or epochs
        compile_for(
            trainer,
            phase,
            self.config,
            planned,
            self.steps,
            groups,
            epochs_before=state.epochs_before(self.stage.name),
        )
        check_trainer(trainer)
        trainer.optimizer.build(trainer.trainable_variables)
        title = f"{self.stage.name}/{phase.name}"
        table = group_table(trainer.optimizer, trainer.trainable_variables)
        logger.debug("Optimizers of %s:\n%s", title, optimizer_lines(table))
        listed = self._callbacks(phase, epochs)
        stateful = [one for one in listed if hasattr(one, "get_state")]
        if started:
            last = load_checkpoint(self.folder.last_checkpoint)
            last.restore("optimizer", trainer.optimizer.variables)
            for callback in stateful:
                callback.set_state(state.callbacks[type(callback).__name__])
        progress = TrainingProgress(
            state,
            title,
            epochs,
            self.steps,
            self._epochs_later(),
            self.monitor,
            self._validation_seconds(epochs),
        )
        self._image_seconds = None
        stops, preemption = None, self.request.preemption
        if distribute.num_workers() > 1:
            stops = repair_fit(trainer, lambda: preemption.requested)
        recorder = RunRecorder(
            self.folder,
            state,
            labels={"stage": self.stage.name, "phase": phase.name},
            epochs=epochs,
            steps=self.steps,
            preemption=preemption,
            monitor=self.monitor,
            stateful=stateful,
            stops=stops,
        )
        with (
            contextlib.closing(progress),
            preemption.waits(),
            self.request.timing.part("steps"),
        ):
            while not state.phase_done:
                progress.first_step = state.step
                trainer.fit(
                    self._batches(),
                    # An interrupted epoch has fewer steps left, so it needs
                    # a separate call.
                    epochs=state.epoch + 1 if state.step else epochs,
                    initial_epoch=state.epoch,
                    steps_per_epoch=self.steps - state.step,
                    shuffle=False,
                    verbose=0,
                    callbacks=[*listed, progress, recorder],
                )

    def _validation_seconds(self, epochs: int) -> float | None:
        """Returns what the validations of the stage take from here on."""
        if self._image_seconds is None or self.data.validation is None:
            return self._image_seconds
        # Nothing validates a refit.
        left = epochs - self.state.epoch + self._epochs_later(refit=False)
        times = math.ceil(left / (self.config.evaluation.every or 1))
        return times * len(self.data.validation) * self._image_seconds

    def _batches(self) -> tf.data.Dataset:
        """Returns the batches from the next step of the phase on."""
        epoch = self._epochs_before() + self.state.epoch
        step = self.state.step
        if self._features is not None:
            return self._features.train_batches(epoch, step, self.sampler)
        return train_batches(
            self.data.fit,
            self.config,
            first_epoch=epoch,
            first_step=step,
            steps=self.steps,
            sampler=self.sampler,
        )

    def _finish_phase(self) -> None:
        """Unfreezes the backbone, records the phase, and moves to the next."""
        unfreeze(self.models.trainer)
        record = self.state.records.setdefault(self.stage.name, {})
        record.setdefault("epochs", []).append(self.state.epoch)
        if self.data.validation is not None:
            record["best_epoch"] = self.state.best_epoch
            record["best_phase"] = self.state.best_phase
        plateau = self.state.callbacks.get("ReduceLROnPlateau")
        settings = self.stage.phases[self.state.phase].plateau
        if plateau is not None and settings is not None:
            drops = {"epochs": plateau["drops"], "factor": settings.factor}
            record.setdefault("drops", {})[str(self.state.phase)] = drops
        self.state.next_phase()

    def _callbacks(self, phase: PhaseConfig, epochs: int) -> list[Any]:
        before = self._epochs_before()
        return [
            *phase_callbacks(
                self.config,
                phase,
                self.data,
                self.models,
                batches=lambda epoch: self.sampler(before + epoch),
                epochs=epochs,
                steps=self.steps,
                timing=self.request.timing,
                features=self._features,
            ),
            *replayed_drops(
                self._drops,
                self.state.phase,
                self.stage.drops_one_epoch_late,
            ),
            *tensorboard(self.folder.tensorboard),
        ]

    def _epochs(self, phase: PhaseConfig) -> int:
        """Returns the length of a phase.

        A replayed last phase ends at the best epoch of the earlier stage, if
        classes validated it.
        """
        best = self._replayed.get("best_epoch")
        if best is None or phase is not self.stage.phases[-1]:
            if phase.epochs is None:
                raise UsageError(
                    f"`epochs` of the phase `{phase.name}` must be set once "
                    "the stage has begun. Received: null. Restore the run's "
                    "`config.yaml`, or choose another `output`."
                )
            return phase.epochs
        if self._replayed["best_phase"] != len(self.stage.phases) - 1:
            return 1
        return best + 1

    def _epochs_before(self) -> int:
        """Counts the epochs of earlier phases, which the sampler has used."""
        earlier = self.stage.phases[: self.state.phase]
        return sum(self._epochs(phase) for phase in earlier)

    def _epochs_later(self, refit: bool = True) -> int:
        """Counts the epochs of the run after this phase, as far as settled."""
        state = self.state
        later = sum(map(self._epochs, self.stage.phases[state.phase + 1 :]))
        refits = refit and may_refit(self.config, self.data)
        stages = self.config.trainings if refits else self.config.stages
        for stage in stages[state.stage + 1 :]:
            later += sum(phase.epochs or 0 for phase in stage.phases)
        return later
