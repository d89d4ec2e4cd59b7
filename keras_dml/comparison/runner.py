"""Trains the runs of a plan, one by one or several at once."""

import errno
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keras_dml.comparison.job import DISK_FULL
from keras_dml.comparison.jobs import Job
from keras_dml.comparison.launch import start_run
from keras_dml.console import logger
from keras_dml.errors import RunError
from keras_dml.run.folder import RunFolder

GRACE_SECONDS = 60.0


class Runner:
    """Trains jobs in processes of their own.

    Args:
        folder: The plan's folder; runs go to `runs/`, output to `logs/`.
        processes: How many train at once; the cores are shared out.
        on_done: Called after each, one at a time, with the job and its
            seconds; 0 for a run that had been finished before.
        start: Starts one training, see `start_run`.

    Attributes:
        failed: Last words of the runs that failed, by name.
    """

    def __init__(
        self,
        folder: Path,
        processes: int = 1,
        on_done: Callable[[Job, float], None] = lambda job, seconds: None,
        start: Callable[..., subprocess.Popen] = start_run,
    ) -> None:
        self.folder = folder
        self.processes = processes
        self.on_done = on_done
        self.failed: dict[str, str] = {}
        self._start = start
        self._running: set[subprocess.Popen] = set()
        self._stopping = threading.Event()
        self._reason = ""
        self._lock = threading.Lock()
        self._telling = threading.Lock()

    def run(self, jobs: Sequence[Job]) -> None:
        """Trains what is left of the jobs; a failed one stops no other.

        Raises:
            RunError: If the disk is full; finished runs are whole.
            KeyboardInterrupt: When interrupted, with all trainings saved.
        """
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in {job.run: job for job in jobs}.values():
            if self.run_folder(job).finished:
                self.on_done(job, 0.0)
            else:
                waiting.put(job)
        ended: list[threading.Event] = []
        with _terminable():
            try:
                for _ in range(self.processes):
                    event = threading.Event()
                    threading.Thread(
                        target=self._work, args=(waiting, event)
                    ).start()
                    ended.append(event)
                _wait(ended)
            except BaseException:
                self._stop("interrupted")
                _wait(ended)
                raise
        if self._stopping.is_set():
            raise RunError(self._reason)

    def run_folder(self, job: Job) -> RunFolder:
        """Where a job trains."""
        return RunFolder(self.folder / "runs" / job.run)

    def log(self, job: Job) -> Path:
        """Where its output goes."""
        return self.folder / "logs" / f"{job.run}.log"

    def _work(
        self, waiting: "queue.SimpleQueue[Job]", ended: threading.Event
    ) -> None:
        try:
            self._train_all(waiting)
        finally:
            ended.set()

    def _train_all(self, waiting: "queue.SimpleQueue[Job]") -> None:
        while not self._stopping.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._train(job)
            except OSError as error:
                remedy = (
                    "free some space"
                    if error.errno == errno.ENOSPC
                    else "make that possible"
                )
                self._stop(
                    f"The plan was stopped, {error.strerror} "
                    f"({error.filename}). What was finished is whole: "
                    f"{remedy} and start the same command again."
                )

    def _train(self, job: Job) -> None:
        threads = None
        if self.processes > 1:
            threads = max(1, (os.cpu_count() or 1) // self.processes)
        started = time.perf_counter()
        with self._lock:
            if self._stopping.is_set():
                return
            process = self._start(
                job.config, self.run_folder(job).path, self.log(job), threads
            )
            self._running.add(process)
        code = process.wait()
        if process.stdin is not None:
            process.stdin.close()
        with self._lock:
            self._running.discard(process)
        if self._stopping.is_set():
            return
        if code == DISK_FULL:
            self._stop(
                f"The disk is full, in the run {job.run}. What was finished "
                "is whole: free some space and start the same command again."
            )
        elif code != 0:
            self.failed[job.run] = last_words(self.log(job), code)
            logger.warning("%s failed: %s", job.run, self.failed[job.run])
        # Runs may end together, and who hears of them writes files.
        with self._telling:
            self.on_done(job, time.perf_counter() - started)

    def _stop(self, reason: str) -> None:
        """Tells all trainings to save themselves, and waits for them."""
        with self._lock:
            self._reason = self._reason or reason
            self._stopping.set()
            running = list(self._running)
            for process in running:
                process.terminate()
        for process in running:
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def last_words(log: Path, code: int) -> str:
    """Why a training failed: the last line that it wrote."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    written = [line.strip() for line in lines if line.strip()]
    return written[-1].removeprefix("Error: ") if written else f"exit {code}"


def _wait(events: Sequence[threading.Event]) -> None:
    """Waits for all of them.

    Threads are not joined: where a signal has interrupted it once, Python 3.11
    takes a thread for ended that is not.
    """
    for event in events:
        event.wait()


@contextmanager
def _terminable() -> Iterator[None]:
    """Within it SIGTERM raises, so that trainings are stopped and saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
