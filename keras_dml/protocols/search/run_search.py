"""Search: many short trainings, judged on validation classes."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_dml.config import RunConfig
from keras_dml.config.search_section import SearchConfig
from keras_dml.console import logger
from keras_dml.distribute import PreemptedError
from keras_dml.errors import RunError, UsageError
from keras_dml.protocols import launch
from keras_dml.protocols.job import DISK_FULL
from keras_dml.protocols.search.folder import SearchFolder
from keras_dml.protocols.search.result import (
    SearchResult,
    SearchTrial,
    write_best,
    write_trials,
)
from keras_dml.protocols.search.space import MakeConfig, SearchSpace, run_name
from keras_dml.protocols.search.study import (
    SearchStudy,
    import_optuna,
    quiet_optuna,
)
from keras_dml.protocols.search.training import Training
from keras_dml.run.preemption import heeding_sigterm

StartRun = Callable[[RunConfig, Path, Path, int | None], subprocess.Popen]
Progress = Callable[[SearchTrial, int], None]

_STATES = {
    "COMPLETE": "complete",
    "PRUNED": "pruned",
    "FAIL": "failed",
    "RUNNING": "running",
    "WAITING": "waiting",
}


def run_search(
    section: SearchConfig,
    make_config: MakeConfig,
    folder: str | Path,
    *,
    processes: int = 1,
    start_run: StartRun = launch.start_run,
    progress: Progress | None = None,
    poll: float = 0.5,
    grace: float = 60.0,
) -> SearchResult:
    """Tries settings and finds those with the best validation value.

    Each trial is a training in a process and a run folder of its own. Killed
    and started again, the search goes on: trainings that were running
    continue from their checkpoints, failed ones are tried once more, none is
    repeated. Several calls, also in several processes, may share a folder of
    one machine.

    Args:
        section: The `search` section of a plan.
        make_config: Function of a dict of dotted keys to values and of the
            number of the trial; returns the `RunConfig`. For the same dict it
            must return the same configuration.
        folder: The folder of the search, made if it does not exist.
        processes: Integer, trainings at once. Defaults to `1`.
        start_run: Starts a training. Defaults to
            `protocols.launch.start_run`.
        progress: Called with every `SearchTrial` that ends and the number of
            trials there will be. Defaults to a line in the log.
        poll: Float, seconds between two looks at the trainings. Defaults to
            `0.5`.
        grace: Float, seconds that a training which is told to stop has for
            saving itself. Defaults to `60.0`.

    Returns:
        The trials and the best one. `trials.csv`, `best.yaml` and `figures/`
        in the folder say the same.

    Raises:
        UsageError: If a setting is not known or not valid, the runs have no
            validation classes, the folder belongs to another search, or
            Optuna is not installed.
        RunError: If all trainings fail, or the disk is full.
        PreemptedError: On SIGTERM, when the trainings have been saved.

    Example:

    ```python
    section = SearchConfig(space={"model.scale": [4.0, 8.0]}, kind="grid")

    def make_config(changes, number):
        overrides = [f"{key}={value}" for key, value in changes.items()]
        return resolve("norm_softmax", "omniglot", overrides=overrides)

    result = run_search(section, make_config, "searches/scale")
    print(result.best.parameters)
    ```
    """
    if processes < 1:
        raise UsageError(
            f"`processes` must be at least 1. Received: {processes}"
        )
    import_optuna()
    reference = SearchSpace(section).check(make_config)
    files = SearchFolder(folder)
    files.claim(section, reference)
    with quiet_optuna():
        study = SearchStudy(files.path, section)
        try:
            search = _Search(
                study,
                files,
                section,
                make_config,
                start_run,
                processes,
                progress or _say,
                poll,
                grace,
            )
            search.run()
            return search.result()
        finally:
            study.close()


@dataclass
class _Search:
    """The loop of one process over a study that others may share."""

    study: SearchStudy
    files: SearchFolder
    section: SearchConfig
    make_config: MakeConfig
    start_run: StartRun
    processes: int
    progress: Progress
    poll: float
    grace: float
    running: dict[int, tuple[Any, Training]] = field(default_factory=dict)

    @property
    def column(self) -> str:
        return f"val_{self.section.monitor}"

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

    def result(self) -> SearchResult:
        trials = self._write()
        done = [trial for trial in trials if trial.state == "complete"]
        if not done:
            failed = [trial for trial in trials if trial.state == "failed"]
            raise RunError(
                f"All {len(failed)} trainings of the search failed. The last "
                f"one: {failed[-1].reason} Its log is "
                f"{self.files.log(failed[-1].run)}."
            )
        result = SearchResult(
            self.section.monitor, trials, self._importances(len(done))
        )
        write_best(self.files.best, result.best)
        from keras_dml.protocols.search.figures import draw_search

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
        log = self.files.log(run)
        log.parent.mkdir(parents=True, exist_ok=True)
        folder = self.files.run(run)
        self.running[trial.number] = (
            trial,
            Training(
                folder,
                log,
                self.column,
                lambda: self.start_run(config, folder, log, self._threads()),
                lambda epoch, value: self.study.report(trial, epoch, value),
                self.study.reported(trial),
                self.grace,
            ),
        )

    def _end(self, trial: Any, training: Training) -> None:
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

    def _write(self) -> list[SearchTrial]:
        with self.study.alone():
            trials = [
                self._read(number, trial)
                for number, trial in enumerate(self.study.counted())
            ]
            write_trials(self.files.trials, trials)
        return trials

    def _read(self, number: int, trial: Any) -> SearchTrial:
        changes = self.study.changes(trial)
        run = run_name(changes)
        history = self.files.history(run, self.column)
        return SearchTrial(
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
            f"The training has no validation values `{self.column}`. A search "
            "needs validation classes: at least 20 training classes, or "
            "`data.folds` and `data.fold`, and `evaluation.every` no larger "
            "than the number of epochs."
        )

    def _importances(self, complete: int) -> dict[str, float]:
        if complete < 2 or len(self.section.space) < 2:
            return {}
        return self.study.importances()

    def _threads(self) -> int | None:
        if self.processes == 1:
            return None
        return max(1, (os.cpu_count() or 1) // self.processes)

    def _stop(self) -> None:
        for _, training in self.running.values():
            training.stop()
        for _, training in self.running.values():
            training.wait()
        self.running.clear()


def _say(trial: SearchTrial, trials: int) -> None:
    """The default progress: a line in the log."""
    settings = ", ".join(f"{key}={x}" for key, x in trial.parameters.items())
    value = "no value" if trial.value is None else f"{trial.value:.4f}"
    outcome = {
        "pruned": f"stopped after {trial.epochs} epochs at {value}",
        "failed": f"failed: {trial.reason}",
    }.get(trial.state, value)
    logger.info(
        "Trial %d of %d: %s: %s", trial.number + 1, trials, settings, outcome
    )
