"""What a caller of `fit` asks for beside the configuration."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_dml.run.timing import Timing


@dataclasses.dataclass(frozen=True)
class Request:
    """What a caller of `fit` asks for beside the configuration.

    Attributes:
        resume, export, measured, verbose: See `fit`.
        timing: `Timing` since the start of the command.
    """

    resume: bool
    export: Callable[..., object] | None
    measured: Mapping[str, Any] | None
    verbose: bool
    timing: Timing
