"""What a caller of `fit` asks for beside the configuration."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_dml.run.preemption import Preemption
from keras_dml.run.timing import Timing


@dataclasses.dataclass(frozen=True)
class Request:
    """What a caller of `fit` asks for beside the configuration.

    Attributes:
        resume, export, measured, verbose: See `fit`.
        timing: `Timing` since the start of the command.
        preemption: `Preemption` that says whether the run must stop.
    """

    resume: bool = False
    export: Callable[..., object] | None = None
    measured: Mapping[str, Any] | None = None
    verbose: bool = False
    timing: Timing = dataclasses.field(default_factory=Timing)
    preemption: Preemption = dataclasses.field(default_factory=Preemption)
