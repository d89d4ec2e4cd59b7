"""Search: many short trainings, judged on validation classes."""

import os
from pathlib import Path

from keras_dml.comparison import launch
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.launcher import Launcher, StartRun
from keras_dml.tuning.loop import Progress, TuningLoop
from keras_dml.tuning.result import Trial, TuningResult
from keras_dml.tuning.space import MakeConfig, TuningSpace
from keras_dml.tuning.study import (
    TuningStudy,
    import_optuna,
    quiet_optuna,
)


def run_search(
    section: TuningConfig,
    make_config: MakeConfig,
    folder: str | Path,
    *,
    processes: int = 1,
    folds: int = 1,
    retry: bool = True,
    start_run: StartRun = launch.start_run,
    progress: Progress | None = None,
    poll: float = 0.5,
    grace: float = 60.0,
) -> TuningResult:
    """Tries settings and finds those with the best validation value.

    Each trial is a training in a process and a run folder of its own. Killed
    and started again, the search goes on: trainings that were running
    continue from their checkpoints and none is repeated. Several calls, also
    in several processes, may share a folder of one machine.

    Args:
        section: The `search` section of a plan.
        make_config: Function of a dict of dotted keys to values and of the
            number of the trial; returns the `RunConfig`. For the same dict it
            must return the same configuration.
        folder: The folder of the search, made if it does not exist.
        processes: Integer, trainings at once. Defaults to `1`.
        folds: Integer, how many folds of the training classes a trial is
            trained on in turn; the mean of its best values counts. The
            configurations must have that many `data.folds`. Defaults to `1`,
            as the configurations say.
        retry: Boolean, whether trials that failed are tried once more.
            Defaults to `True`.
        start_run: Starts a training. Defaults to
            `comparison.launch.start_run`.
        progress: Called with every `Trial` that ends and the number of
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
    section = TuningConfig(space={"model.scale": [4.0, 8.0]}, kind="grid")

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
    reference = TuningSpace(section).check(make_config)
    if folds != 1 and folds != reference.data.folds:
        raise UsageError(
            "`folds` must be 1 or the `data.folds` of the runs, "
            f"{reference.data.folds}. Received: {folds}"
        )
    files = TuningFolder(folder, folds)
    files.claim(section, reference)
    with quiet_optuna():
        study = TuningStudy(files.path, section, retry)
        try:
            threads = None
            if processes > 1:
                threads = max(1, (os.cpu_count() or 1) // processes)
            column = f"val_{section.monitor}"
            search = TuningLoop(
                study,
                files,
                section,
                make_config,
                Launcher(files, column, start_run, threads, grace),
                processes,
                progress or _say,
                poll,
            )
            search.run()
            return search.result()
        finally:
            study.close()


def _say(trial: Trial, trials: int) -> None:
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
