"""Saves a run before it stops at a SIGTERM."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from keras_dml.distribute import PreemptedError

MESSAGE = (
    "The run was stopped by SIGTERM. Pass `resume=True` to go on with it, "
    "from {place}."
)


class Preemption:
    """Records whether the process was asked to stop.

    Attributes:
        requested: Whether SIGTERM has arrived.
        patient: Whether the running code checks `requested` itself; otherwise
            the signal raises immediately.
    """

    def __init__(self) -> None:
        self.requested = False
        self.patient = False

    def stop(self, place: str) -> None:
        """Ends the run.

        Args:
            place: Name of the last saved state, such as `"epoch 3"`.

        Raises:
            PreemptedError: Always.
        """
        raise PreemptedError(MESSAGE.format(place=place))

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Records signals without raising while the context is open."""
        self.patient = True
        try:
            yield
        finally:
            self.patient = False

    def _on_signal(self, number, frame):
        self.requested = True
        if not self.patient:
            self.stop("its last checkpoint")


@contextlib.contextmanager
def heeding_sigterm() -> Iterator[Preemption]:
    """Records SIGTERM instead of ending the process.

    Changes nothing outside of the main thread, where Python receives no
    signals.
    """
    preemption = Preemption()
    if threading.current_thread() is not threading.main_thread():
        yield preemption
        return
    before = signal.signal(signal.SIGTERM, preemption._on_signal)
    try:
        yield preemption
    finally:
        signal.signal(signal.SIGTERM, before)
