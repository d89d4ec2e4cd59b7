"""Watches work in other processes until none is left."""

import signal
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from keras_dml.console import logger
from keras_dml.errors import PreemptedError, RunError
from keras_dml.files import is_full_disk
from keras_dml.run.preemption import heeding

DISK_FULL = 74
POLL_SECONDS = 0.2


class Supervised(Protocol):
    """Work in other processes that `supervise` can watch."""

    @property
    def name(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    def poll(self) -> bool: ...
    def reason(self) -> str: ...
    def stop(self) -> None: ...
    def wait(self) -> None: ...


Process = TypeVar("Process", bound=Supervised)


def supervise(
    take: Callable[[], Process | None],
    ended: Callable[[Process], None],
    *,
    processes: int = 1,
    unfinished: Callable[[], bool] = lambda: False,
    poll: float = POLL_SECONDS,
) -> None:
    """Runs work in other processes until no work is left.

    If it ends early, it first lets the running processes save themselves.

    Args:
        take: Function that returns the next work, not started yet, or `None`.
        ended: Function called with each work that has ended, one at a time.
        processes: Integer, the largest number of works that run at once.
            Defaults to `1`.
        unfinished: Function that returns whether to wait for more work when
            `take` returns `None`. Defaults to a function that returns
            `False`.
        poll: Float, seconds between two checks. Defaults to `0.2`.

    Raises:
        RunError: If the disk is full, or a file cannot be written.
        PreemptedError: On SIGTERM.
        KeyboardInterrupt: On Ctrl-C.
    """
    running: list[Process] = []
    with heeding(signal.SIGTERM) as preemption, preemption.waits():
        try:
            while True:
                while len(running) < processes and (work := take()) is not None:
                    running.append(work)
                over = [work for work in running if work.poll()]
                for work in over:
                    running.remove(work)
                    _check_disk(work)
                    ended(work)
                if preemption.requested:
                    raise PreemptedError(
                        "Stopped by SIGTERM; all trainings are saved. Run the "
                        "same command again to go on."
                    )
                if not (running or over or unfinished()):
                    return
                if not over:
                    time.sleep(poll)
        except KeyboardInterrupt:
            logger.info(
                "Stopping; the trainings are saved first. Run the same command "
                "again to go on."
            )
            raise
        except OSError as error:
            full = is_full_disk(error)
            what = "The disk is full" if full else f"Stopped: {error.strerror}"
            remedy = "Free some space" if full else "Make that possible"
            raise RunError(
                f"{what} ({error.filename}). Finished trainings are kept. "
                f"{remedy} and run the same command again."
            ) from error
        finally:
            for work in running:
                work.stop()
            for work in running:
                work.wait()


def _check_disk(work: Supervised) -> None:
    if work.exit_code == DISK_FULL:
        raise RunError(
            f"The disk is full, in the run {work.name}: {work.reason()} "
            "Finished trainings are kept. Free some space and run the same "
            "command again."
        )
