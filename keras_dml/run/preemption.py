"""Saves a run before it stops at a SIGTERM or at Ctrl-C."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from keras_dml.console import logger
from keras_dml.errors import PreemptedError

GO_ON = "Pass `resume=True` to go on with it, from {place}."


class Preemption:
    """Records whether the process was asked to stop.

    Attributes:
        requested: Whether a signal has arrived.
        interrupted: Whether that was Ctrl-C.
        patient: Whether the running code checks `requested` itself; otherwise
            the signal raises immediately.
    """

    def __init__(self) -> None:
        self.requested = False
        self.interrupted = False
        self.patient = False

    def stop(self, place: str) -> None:
        """Ends the run.

        Args:
            place: Name of the last saved state, such as `"epoch 3"`.

        Raises:
            KeyboardInterrupt: After Ctrl-C.
            PreemptedError: After SIGTERM, or if another worker was told to
                stop.
        """
        advice = GO_ON.format(place=place)
        if self.interrupted:
            logger.info("Stopped. %s", advice)
            raise KeyboardInterrupt
        raise PreemptedError(f"The run was stopped by SIGTERM. {advice}")

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Records signals without raising while the context is open."""
        self.patient = True
        try:
            yield
        finally:
            self.patient = False

    def _on_signal(self, number, frame):
        if number == signal.SIGINT and self.interrupted:
            raise KeyboardInterrupt
        self.requested = True
        self.interrupted |= number == signal.SIGINT
        if not self.patient:
            self.stop("its last checkpoint, or from the start")
        if number == signal.SIGINT:
            logger.info(
                "Stopping after this step. Press Ctrl-C again to stop at once, "
                "without saving."
            )


@contextlib.contextmanager
def heeding(*signals: int) -> Iterator[Preemption]:
    """Records signals instead of ending the process.

    Changes nothing outside of the main thread, where Python receives no
    signals.

    Args:
        *signals: Numbers of signals, `signal.SIGTERM` or `signal.SIGINT`.
    """
    preemption = Preemption()
    if threading.current_thread() is not threading.main_thread():
        yield preemption
        return
    before = {
        number: signal.signal(number, preemption._on_signal)
        for number in signals
    }
    try:
        yield preemption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
