"""Starts, watches and stops trainings in separate processes.

`python -m keras_dml.run.processes CONFIG.yaml FOLDER` runs one of them.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from keras_dml.config import RunConfig, dump_run_config, load_run_config
from keras_dml.distribute import PREEMPTED, RESTART
from keras_dml.errors import PreemptedError, RunError, UsageError
from keras_dml.files import is_full_disk, is_locked, write_text
from keras_dml.run.folder import RunFolder
from keras_dml.run.supervise import DISK_FULL

GRACE_SECONDS = 60.0
RESTARTS = 3
# Exit codes of a training that was stopped from outside and saved itself. It
# is started again, and continues where it stopped.
_RESTARTED = (PREEMPTED, RESTART, -signal.SIGTERM)

Start = Callable[[RunConfig, Path, Path, int | None], subprocess.Popen]


def start_training(
    config: RunConfig, folder: Path, log: Path, threads: int | None = None
) -> subprocess.Popen:
    """Starts a training, or continues an interrupted one.

    Each training has its own process, so that its memory, seeds and crashes
    do not affect the others. It saves itself and stops when the process that
    started it ends.

    Args:
        config: The configuration of the run.
        folder: The run folder.
        log: The file to which all output is appended.
        threads: Number of cores it may use. Defaults to `None`, all.

    Returns:
        The process. Its exit code is 0 if the run is finished, 74 if the disk
        is full, or that of the error: 143 if SIGTERM stopped the run and it
        was saved, 2 for a wrong setting, and 1 for most others.
    """
    settings = log.with_suffix(".yaml")
    write_text(settings, dump_run_config(config))
    environment = {"PYTHONWARNINGS": "ignore", **os.environ}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if threads is not None:
        for kind in ("TF_NUM_INTRAOP", "TF_NUM_INTEROP", "OMP_NUM"):
            environment[f"{kind}_THREADS"] = str(threads)
    with open(log, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "keras_dml.run.processes", settings, folder],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
        )


def threads_each(processes: int) -> int | None:
    """Returns the number of cores per training; `None` means all."""
    if processes == 1:
        return None
    return max(1, (os.cpu_count() or 1) // processes)


class TrainingProcess:
    """Trains one run in a separate process.

    If the process is stopped from outside, it is started again, at most three
    times.

    Args:
        config: The configuration of the run.
        folder: The run folder.
        log: The file to which the process writes.
        threads: Number of cores it may use. Defaults to `None`, all.
        start: Function that starts the process. Defaults to `start_training`.
        grace: Seconds between SIGTERM, at which a training saves itself, and
            SIGKILL. Defaults to `60.0`.

    Attributes:
        exit_code: The exit code; `None` until the process has ended, 0 if the
            run was already finished.
        seconds: Duration of the training; 0 if the run was already finished.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        log: Path,
        threads: int | None = None,
        *,
        start: Start = start_training,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.folder = RunFolder(folder)
        self.log = log
        self.exit_code: int | None = None
        self.seconds = 0.0
        self._start = lambda: start(config, folder, log, threads)
        self._grace = grace
        self._process: subprocess.Popen | None = None
        self._begun = 0.0
        self._told_to_stop: float | None = None
        self._restarts = 0

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return self.folder.path.name

    def poll(self) -> bool:
        """Starts the process if needed, and returns whether the run ended."""
        if self._process is None:
            return self._begin()
        self.exit_code = self._process.poll()
        if self.exit_code is None:
            return False
        self.seconds = time.perf_counter() - self._begun
        self._close()
        if (
            self.exit_code in _RESTARTED
            and self._told_to_stop is None
            and self._restarts < RESTARTS
        ):
            self._restarts += 1
            return self._begin()
        return True

    def reason(self) -> str:
        """Returns why the training failed: the signal or the last log line."""
        code = self.exit_code or 0
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        said = last_line(self.log).removeprefix("Error: ")
        return said or f"exit code {code}"

    def stop(self) -> None:
        """Asks the process to save itself and end.

        Kills the process if a later call comes more than `grace` seconds
        after the first one.
        """
        if self._process is None or self._process.poll() is not None:
            return
        now = time.monotonic()
        if self._told_to_stop is None:
            self._told_to_stop = now
            self._process.terminate()
        elif now - self._told_to_stop > self._grace:
            self._process.kill()

    def wait(self) -> None:
        """Waits until a process that was asked to stop has ended."""
        if self._process is None:
            return
        try:
            self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _begin(self) -> bool:
        self._process = self.exit_code = None
        if is_locked(self.folder.path / self.folder.lock_name):
            # The starter of another process was killed, and that process is
            # still saving the run.
            return False
        if self.folder.finished:
            self.exit_code = 0
            return True
        self._begun = self._begun or time.perf_counter()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = self._start()
        return False

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def last_line(log: Path) -> str:
    """Returns the last line of a log that is not blank, or `""`."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return next((line for line in text.split("\n")[::-1] if line.strip()), "")


def main(settings: str, folder: str) -> None:
    """Trains and measures a run, or continues an interrupted one."""
    threading.Thread(target=_stop_with_starter, daemon=True).start()
    # Imported here: it takes seconds, in which the starter may already end.
    from keras_dml.run import fit as train

    try:
        train.fit(load_run_config(Path(settings)), folder, resume=True)
    except (UsageError, RunError, PreemptedError) as error:
        _leave(error, error.exit_code)
    except Exception as error:
        if not is_full_disk(error):
            raise
        _leave(error, DISK_FULL)


def _stop_with_starter() -> None:
    """Sends SIGTERM to this process when its starter ends.

    The starter's end of the pipe closes when the starter ends for any reason.
    """
    # Does not use `sys.stdin`, whose lock would be held at exit.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(error: BaseException, code: int) -> NoReturn:
    print(f"Error: {error}", file=sys.stderr, flush=True)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
