"""Where a run stands between two epochs; saved with every checkpoint."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RunState:
    """Position, choices and records of a run; all JSON-able.

    Attributes:
        stage: Number of the current stage.
        phase: Number of the current phase of the stage.
        epoch: The next epoch of the phase.
        step: The next step of it; 0 unless it was stopped in the middle.
        phase_done: Whether the phase has ended, on time or early.
        best: The best validation value of the stage so far.
        best_phase: The phase of that value.
        best_epoch: The epoch of that value within its phase.
        best_metrics: All validation metrics of that epoch.
        seconds: Training time so far.
        history: One row per finished epoch.
        records: Per finished stage, its drops and its best epoch.
        baselines: Results before training, by name.
        callbacks: State of the callbacks of the phase, by class name.
    """

    stage: int = 0
    phase: int = 0
    epoch: int = 0
    step: int = 0
    phase_done: bool = False
    best: float | None = None
    best_phase: int = 0
    best_epoch: int = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def next_phase(self) -> None:
        """Moves on to the phase after this one."""
        self.phase += 1
        self.epoch = 0
        self.step = 0
        self.phase_done = False
        self.callbacks = {}

    def next_stage(self) -> None:
        """Moves on to the stage after this one."""
        self.next_phase()
        self.stage += 1
        self.phase = 0
        self.best = None
        self.best_phase = self.best_epoch = 0
        self.best_metrics = {}

    def to_dict(self) -> dict[str, Any]:
        """The state as plain values."""
        return dataclasses.asdict(self)
