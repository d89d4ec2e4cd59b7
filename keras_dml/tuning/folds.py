"""The trainings of a trial that is judged on several folds."""

from collections.abc import Callable, Iterable, Sequence

from keras_dml.tuning.history import History, mean_history
from keras_dml.tuning.training import Training


class FoldedTraining:
    """Trainings on all folds, one after the other, as one `Training`.

    The mean of their best values so far is what is reported, after each fold;
    so a trial that is worse than the others after some folds is spared the
    rest.

    Args:
        trainings: One for each fold, not begun.
        report: Takes the number of a fold and the mean up to it, once;
            returns whether the trial should stop there.
        reported: Numbers of the folds that were reported before.
    """

    def __init__(
        self,
        trainings: Sequence[Training],
        report: Callable[[int, float], bool],
        reported: Iterable[int] = (),
    ) -> None:
        self.pruned = False
        self._trainings = list(trainings)
        self._report = report
        self._reported = set(reported)
        self._fold = 0

    @property
    def history(self) -> History:
        """All folds as one training."""
        return mean_history([one.history for one in self._trainings])

    @property
    def succeeded(self) -> bool:
        """Whether the last training that was begun came to its end."""
        return self._current.succeeded

    @property
    def exit_code(self) -> int | None:
        """The exit code of that training."""
        return self._current.exit_code

    def poll(self) -> bool:
        """Looks after the trainings; whether the trial has ended."""
        if not self._current.poll():
            return False
        if not self.succeeded or self._current.history.best is None:
            return True
        last = self._fold + 1 == len(self._trainings)
        value = self.history.best
        if self._fold not in self._reported and value is not None:
            self._reported.add(self._fold)
            self.pruned = self._report(self._fold, value) and not last
        if self.pruned or last:
            return True
        self._fold += 1
        return False

    def reason(self) -> str:
        """Why the training failed: its last words."""
        return f"fold {self._fold}: {self._current.reason()}"

    def stop(self) -> None:
        """Asks the process to save itself and end; insists after a while."""
        self._current.stop()

    def wait(self) -> None:
        """Waits until a process that was told to stop has ended."""
        self._current.wait()

    @property
    def _current(self) -> Training:
        return self._trainings[self._fold]
