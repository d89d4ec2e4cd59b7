"""The loop of a search: starts trials, watches them, and notes how they end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keras_dml.comparison.job import DISK_FULL
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.distribute import PreemptedError
from keras_dml.errors import RunError, UsageError
from keras_dml.run.preemption import heeding_sigterm
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.folds import FoldedTraining
from keras_dml.tuning.launcher import Launcher
from keras_dml.tuning.result import (
    Trial,
    TuningResult,
    write_best,
    write_trials,
)
from keras_dml.tuning.space import MakeConfig, run_name
from keras_dml.tuning.study import TuningStudy
from keras_dml.tuning.training import Training

Progress = Callable[[Trial, int], None]

_STATES = {
    "COMPLETE": "complete",
    "PRUNED": "pruned",
    "FAIL": "failed",
    "RUNNING": "running",
    "WAITING": "waiting",
}


@dataclass
class TuningLoop:
    """The loop of one process over a study that others may share.

    Args:
        study: The study.
        files: The folder of the search.
        section: The `search` section of a plan.
        make_config: The run of some settings, see `run_search`.
        launcher: Makes the trainings of trials.
        processes: Integer, trainings at once.
        progress: Called with every trial that ends, see `run_search`.
        poll: Float, seconds between two looks at the trainings.
    """

    study: TuningStudy
    files: TuningFolder
    section: TuningConfig
    make_config: MakeConfig
    launcher: Launcher
    processes: int
    progress: Progress
    poll: float
    running: dict[int, tuple[Any, Training | FoldedTraining]] = field(
        default_factory=dict
    )

    def run(self) -> None:
        with heeding_sigterm() as preemption, preemption.waits():
            try:
                while self._step():
                    if preemption.requested:
                        raise PreemptedError(
                            "The search was stopped by SIGTERM; its trainings "
                            "are saved. Run the same command again to go on."
                        )
                    time.sleep(self.poll)
            finally:
                self._stop()

    def result(self) -> TuningResult:
        trials = self._write()
        done = [trial for trial in trials if trial.state == "complete"]
        if not done:
            failed = [trial for trial in trials if trial.state == "failed"]
            raise RunError(
                f"All {len(failed)} trainings of the search failed. The last "
                f"one: {failed[-1].reason} Its log is "
                f"{self.files.output(failed[-1].run)}."
            )
        result = TuningResult(
            self.section.monitor, trials, self._importances(len(done))
        )
        write_best(self.files.best, result.best)
        from keras_dml.tuning.figures import draw_search

        draw_search(result, self.section, self.files.figures)
        return result

    def _step(self) -> bool:
        """Starts, watches and ends trainings; whether there is more to do."""
        exhausted = False
        while not exhausted and len(self.running) < self.processes:
            trial = self.study.take()
            if trial is None:
                exhausted = True
            else:
                self._start(trial)
        for number, (trial, training) in list(self.running.items()):
            if training.poll():
                del self.running[number]
                self._end(trial, training)
        return not exhausted or bool(self.running) or self.study.unfinished()

    def _start(self, trial: Any) -> None:
        changes = self.study.changes(trial)
        run = run_name(changes)
        try:
            config = self.make_config(
                changes, self.study.position(trial.number)
            )
        except UsageError as error:
            # Each setting is valid, but not all of them together.
            self.study.tell(trial, "FAIL", reason=str(error))
            self._tell(trial)
            return
        self.running[trial.number] = (
            trial,
            self.launcher.training(
                run,
                config,
                lambda number, value: self.study.report(trial, number, value),
                self.study.reported(trial),
            ),
        )

    def _end(self, trial: Any, training: Training | FoldedTraining) -> None:
        best = training.history.best
        if training.pruned:
            self.study.tell(trial, "PRUNED")
        elif training.exit_code == DISK_FULL:
            # The trial stays open, and the next search goes on with it.
            raise RunError(
                f"The disk is full: {training.reason()}. Finished trainings "
                "are kept. Make room and run the same command again."
            )
        elif not training.succeeded:
            self.study.tell(trial, "FAIL", reason=training.reason())
        elif best is None:
            self.study.tell(trial, "FAIL", reason=self._no_values())
            self._tell(trial)
            raise UsageError(self._no_values())
        else:
            self.study.tell(trial, "COMPLETE", best)
        self._tell(trial)

    def _tell(self, trial: Any) -> None:
        position = self.study.position(trial.number)
        self.progress(self._write()[position], self.section.budget)

    def _write(self) -> list[Trial]:
        with self.study.alone():
            trials = [
                self._read(number, trial)
                for number, trial in enumerate(self.study.counted())
            ]
            write_trials(self.files.trials, trials)
        return trials

    def _read(self, number: int, trial: Any) -> Trial:
        changes = self.study.changes(trial)
        run = run_name(changes)
        history = self.files.history(run, self.launcher.column)
        return Trial(
            number,
            changes,
            _STATES[trial.state.name],
            history.best,
            history.epochs,
            history.seconds,
            run,
            trial.user_attrs.get("reason", ""),
        )

    def _no_values(self) -> str:
        return (
            "The training has no validation values "
            f"`{self.launcher.column}`. A search needs validation classes: at "
            "least 20 training classes, or "
            "`data.folds` and `data.fold`, and `evaluation.every` no larger "
            "than the number of epochs."
        )

    def _importances(self, complete: int) -> dict[str, float]:
        if complete < 2 or len(self.section.space) < 2:
            return {}
        return self.study.importances()

    def _stop(self) -> None:
        for _, training in self.running.values():
            training.stop()
        for _, training in self.running.values():
            training.wait()
        self.running.clear()
