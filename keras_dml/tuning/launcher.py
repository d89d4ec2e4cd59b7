"""Makes the trainings of trials."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from keras_dml.config import RunConfig
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.folds import FoldedTraining
from keras_dml.tuning.training import Training

StartRun = Callable[[RunConfig, Path, Path, int | None], subprocess.Popen]
Report = Callable[[int, float], bool]


@dataclass(frozen=True)
class Launcher:
    """Makes the training of a trial, or those on its folds.

    Args:
        files: The folder of the search.
        column: The column of `history.csv` that decides.
        start_run: Starts a training, see `comparison.launch.start_run`.
        threads: Integer, the cores of a training; `None` is all.
        grace: Float, seconds that a training has for saving itself.
    """

    files: TuningFolder
    column: str
    start_run: StartRun
    threads: int | None
    grace: float

    def training(
        self,
        run: str,
        config: RunConfig,
        report: Report,
        reported: Iterable[int],
    ) -> Training | FoldedTraining:
        """What trains a trial, not begun.

        Args:
            run: Name of the run.
            config: Its configuration.
            report: Takes numbers and values of epochs, or of folds; returns
                whether the trial should stop there.
            reported: Numbers that were reported before.
        """
        parts = self.files.parts(run)
        if len(parts) == 1:
            return self._training(run, config, report, reported)
        trainings = [
            self._training(part, _on_fold(config, fold), _goes_on)
            for fold, part in enumerate(parts)
        ]
        return FoldedTraining(trainings, report, reported)

    def _training(
        self,
        name: str,
        config: RunConfig,
        report: Report,
        reported: Iterable[int] = (),
    ) -> Training:
        folder, log = self.files.run(name), self.files.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        return Training(
            folder,
            log,
            self.column,
            lambda: self.start_run(config, folder, log, self.threads),
            report,
            reported,
            self.grace,
        )


def _on_fold(config: RunConfig, fold: int) -> RunConfig:
    data = config.data.model_copy(update={"fold": fold})
    return config.model_copy(update={"data": data})


def _goes_on(epoch: int, value: float) -> bool:
    """A fold by itself is not stopped: folds differ too much."""
    return False
