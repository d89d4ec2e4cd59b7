"""One training of a search, watched while it runs."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from keras_dml.distribute import PREEMPTED, RESTART
from keras_dml.run.folder import RunFolder
from keras_dml.tuning.history import History, read_history
from keras_dml.tuning.locks import is_locked

RESTARTS = 3
# Stopped from outside and saved: it goes on where it stopped.
_RESTARTED = (PREEMPTED, RESTART, -signal.SIGTERM)


class Training:
    """A training process and the validation values that it writes.

    Args:
        folder: The run folder.
        log: The file that the process writes to.
        column: The column of `history.csv` to watch.
        start: Starts the process, or goes on with an interrupted run.
        report: Takes the number and value of each validated epoch, once;
            returns whether the training should stop there.
        reported: Numbers of the epochs that were reported before.
        grace: Seconds from SIGTERM, upon which a training saves itself, to
            SIGKILL.
    """

    def __init__(
        self,
        folder: Path,
        log: Path,
        column: str,
        start: Callable[[], subprocess.Popen],
        report: Callable[[int, float], bool],
        reported: Iterable[int] = (),
        grace: float = 60.0,
    ) -> None:
        self.folder = RunFolder(folder)
        self.log = log
        self.column = column
        self.pruned = False
        self.history = History()
        self._start = start
        self._report = report
        self._reported = set(reported)
        self._grace = grace
        self._process: subprocess.Popen | None = None
        self._told_to_stop: float | None = None
        self._restarts = 0
        self._code: int | None = None

    def poll(self) -> bool:
        """Looks after the training; whether it has ended."""
        if self._process is None:
            return self._begin()
        self._code = self._process.poll()
        self._read()
        if self._code is None:
            if self.pruned:
                self.stop()
            return False
        self._close()
        if (
            self._code in _RESTARTED
            and self._told_to_stop is None
            and self._restarts < RESTARTS
        ):
            self._restarts += 1
            return self._begin()
        return True

    @property
    def succeeded(self) -> bool:
        """Whether the run came to its end."""
        return self._code == 0

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process; 0 of a run finished before."""
        return self._code

    def reason(self) -> str:
        """Why the training failed: its last words."""
        code = self._code or 0
        ended = (
            f"killed by {signal.Signals(-code).name}"
            if code < 0
            else f"exit code {code}"
        )
        last = last_line(self.log)
        return f"{last} ({ended})" if last else ended

    def stop(self) -> None:
        """Asks the process to save itself and end; insists after a while."""
        if self._process is None or self._process.poll() is not None:
            return
        now = time.monotonic()
        if self._told_to_stop is None:
            self._told_to_stop = now
            self._process.terminate()
        elif now - self._told_to_stop > self._grace:
            self._process.kill()

    def wait(self) -> None:
        """Waits until a process that was told to stop has ended."""
        if self._process is None:
            return
        try:
            self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _begin(self) -> bool:
        self._process = self._code = None
        if is_locked(self.folder.checkpoints / ".lock"):
            # The process of a search that was killed is still saving itself.
            return False
        if self.folder.finished:
            self._code = 0
        self._read()
        if self.folder.finished or self.pruned:
            return True
        self._process = self._start()
        return False

    def _read(self) -> None:
        self.history = read_history(self.folder.history, self.column)
        for epoch, value in self.history.values.items():
            if self.pruned or epoch in self._reported:
                continue
            self._reported.add(epoch)
            # What has ended is not stopped.
            self.pruned = self._report(epoch, value) and self._code is None

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
