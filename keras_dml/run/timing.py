"""Measures how long each part of a training's command takes."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

_process: list[float] = []


@contextlib.contextmanager
def command_of_process() -> Iterator[None]:
    """Lets the first `Timing` inside begin with the process and its imports."""
    _process[:] = [time.perf_counter() - process_age()]
    try:
        yield
    finally:
        _process.clear()


def process_age() -> float:
    """Returns the seconds since this process began, or 0 if unknown."""
    try:
        stat = Path("/proc/self/stat").read_text()
        # The name before it, in brackets, may hold spaces.
        ticks = int(stat.rpartition(")")[2].split()[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, AttributeError, ValueError, IndexError):
        return 0.0


class Timing:
    """Divides the time since the start of a command among its parts.

    Each second counts for one part: what is inside another part counts for
    itself alone. What is in no part counts for `"other"`.

    Attributes:
        seconds: Dict of the parts to their seconds, in the order in which
            they began.

    Example:

    ```python
    timing = Timing()
    with timing.part("steps"):
        train()
        with timing.part("validation"):
            validate()
    timing.seconds
    ```
    """

    def __init__(self) -> None:
        now = time.perf_counter()
        self._began = _process.pop() if _process else now
        self._last = now
        self._part = "other"
        self.seconds: dict[str, float] = {"start": now - self._began}

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the command."""
        return time.perf_counter() - self._began

    def enter(self, name: str) -> str:
        """Begins a part, and returns the one that it ends."""
        now = time.perf_counter()
        seconds = self.seconds.get(self._part, 0.0) + now - self._last
        self.seconds[self._part] = seconds
        self._last = now
        ended, self._part = self._part, name
        return ended

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts what runs inside for a part."""
        outer = self.enter(name)
        try:
            yield
        finally:
            self.enter(outer)

    def rounded(self) -> dict[str, float]:
        """Returns the seconds of each part until now, to a tenth."""
        self.enter(self._part)
        return {name: round(took, 1) for name, took in self.seconds.items()}
