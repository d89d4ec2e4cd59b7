"""Whether a monitored value still gets better, as a state that is saved."""

import dataclasses
import math
import warnings
from typing import Any

MODES = ("max", "min")


@dataclasses.dataclass
class Improvement:
    """The best value so far and how long ago it was.

    Attributes:
        monitor: Key in the logs.
        mode: `"max"` or `"min"`, which direction is better.
        min_delta: How much better a new best value must be.
        best: The best value so far.
        best_epoch: Its epoch.
        wait: Number of epochs since then, as far as they were counted.
    """

    monitor: str
    mode: str
    min_delta: float
    best: float | None = None
    best_epoch: int | None = None
    wait: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(
                '`mode` must be "max" or "min", the direction in which '
                f"{self.monitor!r} is better. Received: mode={self.mode!r}"
            )
        if not self.min_delta >= 0:
            raise ValueError(
                "`min_delta` must not be negative. "
                f"Received: min_delta={self.min_delta!r}"
            )

    def read(self, logs: dict[str, Any] | None, callback: str) -> float | None:
        """The monitored value; warns if it is missing."""
        if logs and self.monitor in logs:
            return float(logs[self.monitor])
        warnings.warn(
            f"`{callback}` monitors {self.monitor!r}, which is not in the logs "
            "of this epoch. The callback that writes it must come first. "
            f"Received: {sorted(logs or {})}",
            stacklevel=3,
        )
        return None

    def update(self, value: float, epoch: int) -> bool:
        """Takes in a value; returns whether it is the best so far."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.best is None:
            improved = not math.isnan(value)
        else:
            improved = sign * (value - self.best) > self.min_delta
        if improved:
            self.best, self.best_epoch, self.wait = value, epoch, 0
        else:
            self.wait += 1
        return improved

    def get_state(self) -> dict[str, Any]:
        """What changes, as a JSON-able dict."""
        return {
            "best": self.best,
            "best_epoch": self.best_epoch,
            "wait": self.wait,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        self.best = state["best"]
        self.best_epoch = state["best_epoch"]
        self.wait = state["wait"]
