"""Runs the steps of a training, from its start or last checkpoint."""

import time
from typing import Any

import keras
import numpy as np

from keras_dml import distribute
from keras_dml.config import RunConfig, StageConfig
from keras_dml.console import logger
from keras_dml.errors import RunError
from keras_dml.models import (
    forward_function,
    get_backbone,
    pooled_features,
)
from keras_dml.run.batches import sampling_warnings
from keras_dml.run.cached_features import CachedFeatures
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint
from keras_dml.run.data import (
    RunData,
    StageData,
    stage_data,
)
from keras_dml.run.finish import BEFORE_TRAINING, finish
from keras_dml.run.folder import RunFolder
from keras_dml.run.length import (
    describe_length,
    is_open,
    later_trainings,
    planned_steps,
    with_length,
)
from keras_dml.run.measure import embed, write_per_query
from keras_dml.run.memory import check_activations
from keras_dml.run.minutes import affordable_size, has_open_phase
from keras_dml.run.models import Models, build_models, trains_on_features
from keras_dml.run.pace import (
    TrainingPace,
    embedding_seconds,
    measure_pace,
)
from keras_dml.run.phases import StageTrainer
from keras_dml.run.progress import legend
from keras_dml.run.recorder import RunState
from keras_dml.run.refit import (
    is_refit,
    keep_unseen,
    refit_config,
    refit_follows,
    refit_stage,
)
from keras_dml.run.request import Request
from keras_dml.run.same_images import check_begun_with
from keras_dml.run.settling import has_several_sizes
from keras_dml.run.stage_checks import (
    warn_about_late_starts,
    warn_about_section,
)
from keras_dml.run.start import (
    StartFeatures,
    measure_baselines,
    start_from_features,
)
from keras_dml.wording import titled


class Training:
    """Runs the steps of a training, from its start or last checkpoint.

    The constructor builds the first models, so it raises if weights are
    missing or do not fit, before anything is written.
    """

    def __init__(
        self,
        config: RunConfig,
        data: RunData,
        folder: RunFolder,
        strategy: Any,
        request: Request,
    ) -> None:
        self.config = config
        self.data = data
        self.folder = folder
        self.strategy = strategy
        self.request = request
        self.state = RunState()
        # How long a validation takes follows from it; a resumed run lacks it.
        self._image_seconds: float | None = None
        self._features: CachedFeatures | None = None
        self._known = StartFeatures(config)
        self._validated: np.ndarray | None = None
        if distribute.broadcast(folder.last_checkpoint.exists()):
            saved = load_checkpoint(folder.last_checkpoint).state
            self.state = self._checked(saved)
        self.state.images = check_begun_with(self.state.images, data, config)
        self.timing = request.timing
        stage = self._stage_data()
        with self.timing.part("build"):
            self.models = self._build(stage)
        check_activations(config, stage.fit, self.models.trainer)

    def affordable_size(self) -> int | None:
        """Returns the side of images whose embedding the minutes allow."""
        config, size = self.config, self.config.data.image_size
        if (
            config.minutes is None
            or config.model.weights == "none"
            or not any(map(has_open_phase, config.stages))
            or not has_several_sizes(get_backbone(config.model.backbone))
        ):
            return size
        data = self._stage_data()
        with self.timing.part("pace"):
            seconds = embedding_seconds(
                pooled_features(self.models.embedder), data.fit, config
            )
        slowest = max(distribute.gather(seconds))
        return affordable_size(config, data, len(self.data.test), slowest)

    def _checked(self, saved: dict[str, Any]) -> RunState:
        """Returns the state in a checkpoint, if it is one of this run."""
        path = self.folder.last_checkpoint
        try:
            state = RunState.from_dict(saved)
            self.config.trainings[state.stage].phases[state.phase]
        except (ValueError, IndexError) as error:
            reason = " ".join(str(error).split())[:200]
            raise RunError(
                f"{path} does not hold the state of this run: {reason}. "
                "Restore it, or choose another `output`."
            ) from error
        return state

    def run(self) -> dict[str, Any] | None:
        warn_about_section(self.config)
        if self.state.history:
            logger.info("Going on after epoch %d.", len(self.state.history))
            # A kill may have come between the checkpoint and this table.
            if distribute.is_chief():
                self.folder.write_history(self.state.history)
        while True:
            self._run_stage()
            if not self._next_stage():
                return finish(
                    self.models.embedder,
                    self.config,
                    self.data,
                    self.state,
                    self.folder,
                    self.request,
                )
            self.models = self._build(self._stage_data())

    def _next_stage(self) -> bool:
        """Moves on to the next stage if there is one."""
        state = self.state
        if state.stage + 1 < len(self.config.stages):
            state.next_stage()
            return True
        if not refit_follows(self.config, state):
            return False
        with self.timing.part("validation"):
            images = self._stage_data().validation
            assert images is not None and self._validated is not None
            keep_unseen(self._validated, images, self.folder)
        validated = state.best_metrics
        state.next_stage()
        state.best_metrics = validated
        images = self.data.train
        logger.info(
            "Training once more, from the same start and as long, with what "
            "validated as well: %s images of %d classes ...",
            f"{len(images):,}",
            images.num_classes,
        )
        return True

    @property
    def _stage(self) -> StageConfig:
        if is_refit(self.config, self.state):
            return refit_stage(self.config, self.state)
        return self.config.stages[self.state.stage]

    @property
    def _stage_config(self) -> RunConfig:
        if is_refit(self.config, self.state):
            return refit_config(self.config, self.state)
        return self.config

    def _stage_data(self) -> StageData:
        return stage_data(self.data, self._stage, self.config)

    def _build(self, data: StageData) -> Models:
        # A resumed run looks up its variables by name, so automatic names must
        # not depend on earlier models. Inside a strategy's scope,
        # `clear_session` would break the scope.
        keras.utils.clear_session(free_memory=False)
        with self.strategy.scope():
            return build_models(
                self.config, data.fit.num_classes, data.fit.teacher_dim
            )

    def _run_stage(self) -> None:
        data = self._stage_data()
        for warning in sampling_warnings(data.fit, self.config):
            logger.warning(warning)
        state, pace = self.state, None
        refits, chosen = is_refit(self.config, state), state.interpolation
        if not refits:
            self._known = StartFeatures(self.config)
        with self.strategy.scope():
            # It counts the replicas, as it did when the models were built.
            if trains_on_features(self.config):
                with self.timing.part("features"):
                    self._features = CachedFeatures(
                        self.models.embedder, data, self.config
                    )
            if state.phase == 0 and state.epoch == 0 and state.step == 0:
                pace = self._begin_stage(data)
            seconds = self._image_seconds or 0.0
            trainer = StageTrainer(
                self._stage_config,
                self._stage,
                data,
                self.models,
                self.folder,
                self.state,
                self.request,
                image_seconds=None if pace or refits else seconds,
                features=self._features,
                known=self._known,
            )
            trainer.run()
        self.models, self._validated = trainer.models, trainer.validated
        if refits:
            state.interpolation = chosen

    def _begin_stage(self, data: StageData) -> TrainingPace | None:
        """Settles what must be known, or done, before the first step.

        Returns:
            The pace, if the length had to be planned from it.
        """
        with self.timing.part("features"):
            earlier = None
            if is_refit(self.config, self.state):
                stage = self.config.stages[-1]
                earlier = stage_data(self.data, stage, self.config)
            self.state.shrinkage = start_from_features(
                self.models, data, self._stage_config, self._known, earlier
            )
        if not self.state.baselines:
            with self.timing.part("baselines"):
                self._measure_baselines()
        pace = None
        if not is_refit(self.config, self.state):
            pace = self._plan_stage(data)
        if self._stage_config.evaluation.interpolate:
            save_checkpoint(
                self.folder.start_checkpoint(self.state.stage),
                {"embedder": self.models.embedder.variables},
            )
        return pace

    def _plan_stage(self, data: StageData) -> TrainingPace | None:
        """Settles the length of the stage, and says what it will be."""
        pace = None
        if is_open(self.config, self.state.stage):
            pace = self._settle_length(data)
        length = describe_length(self.config, self.state.stage, data, pace)
        steps = planned_steps(self.config, self.state.stage, data)
        warn_about_late_starts(self.config, self.state.stage, steps)
        monitor = None
        if data.validation is not None:
            monitor = self.config.evaluation.monitor
        epochs = legend(monitor, self.config.evaluation.every)
        logger.info(titled([("Plan", length), ("Epochs", epochs)]))
        return pace

    def _settle_length(self, data: StageData) -> TrainingPace | None:
        """Settles the length of the stage; returns the pace if measured."""
        index, pace = self.state.stage, None
        waits = has_open_phase(self.config.stages[index])
        if waits and self.config.minutes is not None:
            logger.info("Timing a few steps on this machine ...")
            with self.timing.part("pace"):
                pace = measure_pace(
                    self.models,
                    data,
                    self.config,
                    index,
                    self._features,
                    self._image_seconds,
                )
        # Workers must plan the same length.
        used = distribute.gather(self.timing.elapsed)
        self.config = with_length(
            self.config,
            index,
            data,
            pace=pace,
            test_images=len(self.data.test),
            seconds_used=max(used),
            **later_trainings(self.config, self.data, data),
        )
        if distribute.is_chief():
            self.folder.create(self.config)
        return pace

    def _measure_baselines(self) -> None:
        """Measures what the run starts with, for the gains of the end."""
        measured = self.request.measured
        if measured is not None:
            self.state.baselines = {
                # Version 0.1 did not measure both.
                name: measured[name]
                for name in BEFORE_TRAINING
                if name in measured
            }
            return
        logger.info(
            "Measuring on the test images what training has to beat ..."
        )
        embedder, test = self.models.embedder, self.data.test
        network = pooled_features(embedder)
        # Tracing is not counted as the time of an image.
        rows = min(len(test), self.config.evaluation.batch_size)
        shape = (rows, *self.config.data.image_shape)
        forward_function(network)(np.zeros(shape, np.float32))
        started = time.perf_counter()
        features = embed(network, test, self.config)
        self._image_seconds = (time.perf_counter() - started) / len(test)
        results = measure_baselines(embedder, features, self.data, self.config)
        self.state.baselines = {
            name: result.metrics for name, result in results.items()
        }
        if distribute.is_chief():
            for name, result in results.items():
                write_per_query(self.folder.baseline(name), test, result)
