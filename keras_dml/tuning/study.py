"""The record of a tuning: an Optuna study in one SQLite file."""

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.config.tuning_section import PruneConfig, TuningConfig
from keras_dml.errors import RunError, UsageError, reason_of
from keras_dml.tuning.folder import TuningFolder, Worker
from keras_dml.tuning.space import Changes, TuningSpace, run_name

STUDY = "tuning"
# Settings that were drawn before are drawn again. After 10 duplicates TPE has
# settled on one point of a finite space, so that the draw becomes random; after
# 200 there is hardly a new point left, and the tuning ends.
DUPLICATES_OF_SAMPLER = 10
DUPLICATES = 200
LOCK_SECONDS = 120.0


def import_optuna() -> Any:
    """Imports Optuna, which only tuning needs.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise UsageError(
            "Tuning needs Optuna: install it with "
            "`pip install 'keras-dml[tuning]'`."
        ) from error
    return optuna


class TuningStudy:
    """The trials of a tuning, shared by all processes that work on it.

    Each draw has a seed made of the section's seed and the trial's number, so
    that an interrupted tuning draws the same settings when it continues.

    Args:
        folder: The folder of the tuning.
        section: The `tuning` section of a plan.
        retry: Whether trials that failed are tried once more. Defaults to
            `True`.
        folds: Integer, the number of trainings of a trial. Defaults to `1`.

    Attributes:
        worker: This process among those that work on the tuning.
    """

    def __init__(
        self,
        folder: Path,
        section: TuningConfig,
        retry: bool = True,
        folds: int = 1,
    ) -> None:
        self._optuna = import_optuna()
        self._section = section
        self._folds = folds
        # Whether there was hardly a new point left.
        self._exhausted = False
        self.space = TuningSpace(section)
        self.worker = Worker(TuningFolder(folder).workers)
        with contextlib.ExitStack() as undo:
            undo.callback(self.worker.close)
            with self.worker.alone(), _readable_errors():
                self._open(folder / "study.sqlite3")
                self._enqueue_grid()
                if retry:
                    self._retry_failed()
            undo.pop_all()

    def take(self) -> Any:
        """Returns the next trial to train; `None` if all are done or taken.

        A trial whose process is gone comes first and continues.
        """
        with self.worker.alone(), _readable_errors():
            trials = self._trials()
            for trial in trials:
                if trial.state.name == "RUNNING" and not self.worker.lives(
                    trial.user_attrs.get("worker", "")
                ):
                    return self._take_over(trial)
            if any(trial.state.name == "WAITING" for trial in trials):
                return self._ask()
            done = len(self.counted(trials)) >= self._section.budget
            if done or self._exhausted:
                return None
            return self._ask_for_new(trials)

    def counted(self, trials: list[Any] | None = None) -> list[Any]:
        """Returns the trials in order, with the last attempt of each only.

        It leaves out a trial whose process ended before it had drawn all
        settings; `take` continues it.
        """
        trials = self._trials() if trials is None else trials
        retried = {trial.user_attrs.get("retries") for trial in trials}
        return sorted(
            (
                trial
                for trial in trials
                if trial.number not in retried
                and "duplicate" not in trial.user_attrs
                and self._settings(trial).keys() >= self._section.space.keys()
            ),
            key=_place,
        )

    def position(self, number: int) -> int:
        """Returns the position of a trial among the counted ones, from 0."""
        return [trial.number for trial in self.counted()].index(number)

    def changes(self, trial: Any) -> Changes:
        """Returns the settings of a trial."""
        return self.space.changes(self._settings(trial))

    def unfinished(self) -> bool:
        """Returns whether any trial, of any process, is not done."""
        return any(not trial.state.is_finished() for trial in self._trials())

    def reported(self, trial: Any) -> set[int]:
        """Returns the epochs of a trial whose values are already stored."""
        return set(self._trials()[trial.number].intermediate_values)

    def importances(self) -> dict[str, float]:
        """Returns each setting's share of the values' variance (fANOVA).

        Reference:
            Hutter, Hoos, Leyton-Brown 2014, An Efficient Approach for
            Assessing Hyperparameter Importance.
        """
        importance = self._optuna.importance
        fanova = importance.FanovaImportanceEvaluator(seed=self._section.seed)
        try:
            shares = importance.get_param_importances(
                self.study, evaluator=fanova
            )
        except RuntimeError:
            # All values are equal: there is no variance to share.
            return {}
        return {key: float(share) for key, share in shares.items()}

    def report(self, trial: Any, epoch: int, value: float) -> bool:
        """Stores a validation value; returns whether to stop the training."""
        with _readable_errors():
            trial.report(value, epoch)
            return trial.should_prune()

    def tell(
        self, trial: Any, state: str, value: float | None = None, **notes: Any
    ) -> Any:
        """Ends a trial, stores notes about it, and returns what is stored."""
        with _readable_errors():
            for key, note in notes.items():
                trial.set_user_attr(key, note)
            states = self._optuna.trial.TrialState
            return self.study.tell(trial, value, state=states[state])

    def close(self) -> None:
        """Leaves the study; others may continue its running trials."""
        self.worker.close()
        self._storage.remove_session()
        self._storage.engine.dispose()

    def _open(self, path: Path) -> None:
        # A database URL cannot hold every folder name; `connect` can.
        connect = functools.partial(
            sqlite3.connect, path, timeout=LOCK_SECONDS, check_same_thread=False
        )
        self._storage = self._optuna.storages.RDBStorage(
            f"sqlite:///{path.name}", engine_kwargs={"creator": connect}
        )
        self.study = self._optuna.create_study(
            study_name=STUDY,
            storage=self._storage,
            direction="maximize",
            pruner=self._pruner(),
            load_if_exists=True,
        )

    def _enqueue_grid(self) -> None:
        # A process may have been killed before it had added all points.
        points = self.space.grid() if self._section.kind == "grid" else []
        for point in points[len(self._trials()) :]:
            self.study.enqueue_trial(point)

    def _settings(self, trial: Any) -> dict[str, Any]:
        """Returns the settings in Optuna's terms that a trial has so far."""
        if trial.params.keys() >= self._section.space.keys():
            return trial.params
        # Those of a waiting trial are not drawn, but fixed.
        return trial.system_attrs.get("fixed_params", trial.params)

    def _trials(self) -> list[Any]:
        return self.study.get_trials(deepcopy=False)

    def _take_over(self, trial: Any) -> Any:
        identity = self._storage.get_trial_id_from_study_id_trial_number(
            self._storage.get_study_id_from_name(STUDY), trial.number
        )
        self.study.sampler = self._sampler(trial.number)
        taken = self._optuna.trial.Trial(self.study, identity)
        return self._settle(taken)

    def _ask(self, at_random: bool = False) -> Any:
        # The number of a new trial, whose settings are drawn. A waiting trial
        # has its settings already, so that its number does not matter.
        self.study.sampler = self._sampler(len(self._trials()), at_random)
        return self._settle(self.study.ask())

    def _ask_for_new(self, trials: list[Any]) -> Any:
        known = {
            run_name(self.changes(trial)) for trial in self.counted(trials)
        }
        for attempt in range(DUPLICATES):
            trial = self._ask(at_random=attempt >= DUPLICATES_OF_SAMPLER)
            if run_name(self.changes(trial)) not in known:
                return trial
            self.tell(trial, "FAIL", duplicate=True)
        self._exhausted = True
        return None

    def _settle(self, trial: Any) -> Any:
        """Assigns the trial to this process and draws missing settings."""
        trial.set_user_attr("worker", self.worker.name)
        self.space.suggest(trial)
        return trial

    def _retry_failed(self) -> None:
        """Enqueues failed trials again: the disk may have been full."""
        for trial in self.counted():
            if trial.state.name == "FAIL":
                notes = {"retries": trial.number, "place": _place(trial)}
                self.study.enqueue_trial(trial.params, user_attrs=notes)

    def _sampler(self, number: int, at_random: bool = False) -> Any:
        seeds = np.random.SeedSequence([self._section.seed, number])
        seed = int(seeds.generate_state(1)[0])
        if self._section.kind == "tpe" and not at_random:
            return self._optuna.samplers.TPESampler(seed=seed)
        return self._optuna.samplers.RandomSampler(seed=seed)

    def _pruner(self) -> Any:
        pruning = self._section.pruning
        if pruning is None:
            return self._optuna.pruners.NopPruner()
        if self._folds > 1:
            return _pruner_of_means(pruning)
        return self._optuna.pruners.MedianPruner(
            n_startup_trials=pruning.trials, n_warmup_steps=pruning.epochs
        )


def _pruner_of_means(pruning: PruneConfig) -> Any:
    """Returns a pruner of means over folds, which an easy fold may raise.

    Optuna's compares the highest value so far, as is right for epochs.
    """
    optuna = import_optuna()

    class _MeanPruner(optuna.pruners.BasePruner):  # type: ignore[name-defined]
        def prune(self, study: Any, trial: Any) -> bool:
            fold = trial.last_step
            if fold is None or fold < pruning.epochs:
                return False
            complete = (optuna.trial.TrialState.COMPLETE,)
            others = [
                other.intermediate_values[fold]
                for other in study.get_trials(deepcopy=False, states=complete)
                if fold in other.intermediate_values
            ]
            mean = trial.intermediate_values[fold]
            enough = len(others) >= max(1, pruning.trials)
            return enough and bool(mean < np.median(others))

    return _MeanPruner()


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keeps Optuna from logging what the tuning logs itself."""
    logging = import_optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextlib.contextmanager
def _readable_errors() -> Iterator[None]:
    """Turns database errors into a `RunError` that users understand."""
    from sqlalchemy.exc import SQLAlchemyError

    optuna = import_optuna()
    try:
        yield
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
        reason = reason_of(error.__cause__ or error)
        raise RunError(
            f"The record of the tuning could not be read or written: {reason}. "
            "Finished trainings are kept. Once the reason is gone, run the "
            "same command again."
        ) from error


def _place(trial: Any) -> int:
    return trial.user_attrs.get("place", trial.number)
