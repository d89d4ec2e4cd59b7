"""What a run of a plan was, and what came of it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """One run of a plan.

    Args:
        run: Name of its folder.
        source: The data.
        backbone: The network.
        weights: What the network starts from.
        dim: Length of an embedding.
        arm: Line of a table, with the values of `factors` in its name.
        recipe: Its recipe.
        line: The arm without its factors: one line of a figure.
        factors: Swept settings, by dotted key.
        seed: The seed.
        fold: Number of the fold, or `None`.
        status: `"done"`, `"failed"` or `"left"`.
        oracle: Whether the epoch was chosen on the test classes.
        pretrained: Metrics of the features without a head.
        before: Metrics of the untrained head.
        after: Metrics on the test classes.
        validation: Metrics of the epoch on the validation classes.
        train_seconds: Seconds of training.
        folder: The run folder.
        error: Last words of a failed run.
    """

    run: str
    source: str
    backbone: str
    weights: str
    dim: int
    arm: str
    recipe: str
    line: str = ""
    factors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    fold: int | None = None
    status: str = "left"
    oracle: bool = False
    pretrained: Mapping[str, float] = dataclasses.field(default_factory=dict)
    before: Mapping[str, float] = dataclasses.field(default_factory=dict)
    after: Mapping[str, float] = dataclasses.field(default_factory=dict)
    validation: Mapping[str, float] = dataclasses.field(default_factory=dict)
    train_seconds: float = 0.0
    folder: Path | None = None
    error: str = ""
