"""Tuning: many short trainings, judged on validation classes."""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_dml.checks import positive_integer, require
from keras_dml.config import RunConfig
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.config.yaml_files import dump_yaml
from keras_dml.console import logger
from keras_dml.errors import RunError, UsageError
from keras_dml.files import write_text
from keras_dml.run.processes import (
    GRACE_SECONDS,
    Start,
    TrainingProcess,
    start_training,
    threads_each,
)
from keras_dml.run.supervise import supervise
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.space import MakeConfig, TuningSpace, run_name
from keras_dml.tuning.study import TuningStudy, import_optuna, quiet_optuna
from keras_dml.tuning.trials import (
    Trial,
    TrialTraining,
    TuningResult,
    read_progress,
    write_trials,
)

_STATES = {"FAIL": "failed"}


def log_trial(trial: Trial, trials: int) -> None:
    """Logs a line for each trial that ends."""
    settings = ", ".join(f"{key}={x}" for key, x in trial.parameters.items())
    value = "no value" if trial.value is None else f"{trial.value:.4f}"
    outcome = {
        "pruned": f"stopped after {trial.epochs} epochs at {value}",
        "failed": f"failed: {trial.reason}",
    }.get(trial.state, value)
    logger.info(
        "Trial %d of %d: %s: %s", trial.number + 1, trials, settings, outcome
    )


def tune(
    section: TuningConfig,
    make_config: MakeConfig,
    folder: str | Path,
    *,
    processes: int = 1,
    folds: int = 1,
    retry: bool = True,
    start: Start = start_training,
    progress: Callable[[Trial, int], None] = log_trial,
    poll: float = 0.5,
    grace: float = GRACE_SECONDS,
) -> TuningResult:
    """Tries settings and finds those with the best validation value.

    Each trial trains in its own process and run folder. A tuning that was
    killed continues when it is started again: interrupted trainings resume
    from their checkpoints, and no training is repeated. Several calls, also
    from several processes, may share a folder on one machine.

    Args:
        section: The `tuning` section of a plan.
        make_config: Function of a dict of dotted keys to values and of the
            number of the trial; returns the `RunConfig`. For the same dict it
            must return the same configuration.
        folder: The folder of the tuning, made if it does not exist.
        processes: Integer, trainings at once. Defaults to `1`.
        folds: Integer, the number of folds of the training classes that a
            trial trains on, one after the other; the mean of the best values
            counts. The configurations must have the same `data.folds`.
            Defaults to `1`: the fold that the configurations name, if any.
        retry: Boolean, whether trials that failed are tried once more.
            Defaults to `True`.
        start: Starts a training. Defaults to `start_training`.
        progress: Called with every `Trial` that ends and the total number of
            trials. Defaults to a line in the log.
        poll: Float, seconds between two checks of the trainings. Defaults to
            `0.5`.
        grace: Float, seconds that a stopped training has to save itself
            before it is killed. Defaults to `60.0`.

    Returns:
        The trials and the best one. The folder holds them too, in
        `trials.csv`, `best.yaml` and `figures/`.

    Raises:
        UsageError: If a setting is unknown or not valid, the runs have no
            validation classes, the folder belongs to another tuning, or
            Optuna is not installed.
        RunError: If all trainings fail, or the disk is full.
        PreemptedError: On SIGTERM, when the trainings have been saved.

    Example:

    ```python
    section = TuningConfig(space={"model.scale": [4.0, 8.0]}, kind="grid")

    def make_config(changes, number):
        overrides = [f"{key}={value}" for key, value in changes.items()]
        return resolve("norm_softmax", "omniglot", overrides=overrides)

    result = tune(section, make_config, "tunings/scale")
    print(result.best.parameters)
    ```
    """
    positive_integer("processes", processes)
    import_optuna()
    reference = TuningSpace(section).check(make_config)
    wanted = f"1 or the `data.folds` of the runs, {reference.data.folds}"
    require(folds in (1, reference.data.folds), "folds", wanted, folds)
    files = TuningFolder(folder, folds)
    files.claim(section, reference)

    def training(config, run):
        threads = threads_each(processes)
        return TrainingProcess(
            config, run, files.log(run), threads, start=start, grace=grace
        )

    with (
        quiet_optuna(),
        contextlib.closing(
            TuningStudy(files.path, section, retry, folds)
        ) as study,
    ):
        loop = _Loop(study, files, section, make_config, training, progress)
        supervise(
            loop.take,
            loop.ended,
            processes=processes,
            unfinished=study.unfinished,
            poll=poll,
        )
        return loop.result()


@dataclasses.dataclass(frozen=True)
class _Loop:
    """Runs trials of a study that other processes may share.

    Args:
        study: The study.
        files: The folder of the tuning.
        section: The `tuning` section of a plan.
        make_config: Makes the configuration of a trial, see `tune`.
        training: Makes the training of a configuration in a run folder.
        progress: Called with every trial that ends, see `tune`.
    """

    study: TuningStudy
    files: TuningFolder
    section: TuningConfig
    make_config: MakeConfig
    training: Callable[[RunConfig, Path], TrainingProcess]
    progress: Callable[[Trial, int], None]

    @property
    def column(self) -> str:
        """The column of `history.csv` that decides."""
        return f"val_{self.section.monitor}"

    def take(self) -> TrialTraining | None:
        """Returns the next trial to train, or `None` if none is left."""
        while (trial := self.study.take()) is not None:
            changes = self.study.changes(trial)
            position = self.study.position(trial.number)
            try:
                config = self.make_config(changes, position)
            except UsageError as error:
                # Each setting is valid, but not all of them together.
                self._end(trial, "FAIL", reason=str(error))
                continue
            return self._trainings(trial, config)
        return None

    def ended(self, training: TrialTraining) -> None:
        """Records how a trial ended."""
        trial, best = training.trial, training.progress.best
        if training.pruned:
            self._end(trial, "PRUNED")
        elif training.exit_code:
            self._end(trial, "FAIL", reason=training.reason())
        elif best is None:
            reason = (
                f"The training has no validation values `{self.column}`. "
                "Tuning needs validation classes: `data.validation_from` "
                "training classes, or `data.folds` and `data.fold`."
            )
            self._end(trial, "FAIL", reason=reason)
            raise UsageError(reason)
        else:
            self._end(trial, "COMPLETE", best)

    def result(self) -> TuningResult:
        """Returns all trials, and writes and draws them."""
        trials = self._write()
        done = [trial for trial in trials if trial.state == "complete"]
        if not done:
            failed = [trial for trial in trials if trial.state == "failed"]
            # A trial ends with the first fold that fails; one whose settings
            # were refused has no log.
            logs = map(self.files.log, self.files.runs(failed[-1].run))
            written = [log for log in logs if log.is_file()]
            where = f" Its log is {written[-1]}." if written else ""
            raise RunError(
                f"All {len(failed)} trainings of the tuning failed. The last "
                f"one: {failed[-1].reason}{where}"
            )
        shared = len(done) > 1 and len(self.section.space) > 1
        importances = self.study.importances() if shared else {}
        result = TuningResult(self.section.monitor, trials, importances)
        from keras_dml.tuning.figures import draw_tuning

        # Processes that share the tuning end together and write the same files.
        with self.study.worker.alone():
            # For `set` of a plan, or `--set`.
            write_text(self.files.best, dump_yaml(result.best.parameters))
            draw_tuning(result, self.section, self.files.figures)
        return result

    def _trainings(self, trial: Any, config: RunConfig) -> TrialTraining:
        runs = self.files.runs(run_name(self.study.changes(trial)))
        configs = [config]
        if len(runs) > 1:
            configs = [
                config.changed(data={"fold": fold}) for fold in range(len(runs))
            ]
        return TrialTraining(
            trial,
            list(map(self.training, configs, runs)),
            self.column,
            lambda number, value: self.study.report(trial, number, value),
            self.study.reported(trial),
        )

    def _end(self, trial: Any, *outcome: Any, **notes: Any) -> None:
        # Once it has failed, a process that joins may put another attempt in
        # its place.
        position = self.study.position(trial.number)
        ended = self.study.tell(trial, *outcome, **notes)
        self._write()
        self.progress(self._read(position, ended), self.section.budget)

    def _write(self) -> list[Trial]:
        with self.study.worker.alone():
            counted = enumerate(self.study.counted())
            trials = [self._read(number, trial) for number, trial in counted]
            write_trials(self.files.trials, trials)
        return trials

    def _read(self, number: int, trial: Any) -> Trial:
        changes = self.study.changes(trial)
        run, state = run_name(changes), trial.state.name
        reached = read_progress(self.files.runs(run), self.column)
        # What the study decides by, also if the run folders are deleted.
        complete = state == "COMPLETE"
        return Trial(
            number,
            changes,
            _STATES.get(state, state.lower()),
            trial.value if complete else reached.best,
            reached.epochs,
            reached.seconds,
            run,
            trial.user_attrs.get("reason", ""),
        )
