"""Errors that the command line turns into exit codes."""

import contextlib
from collections.abc import Iterator


class UsageError(ValueError):
    """The caller's mistake; the command line prints it and exits with 2."""

    exit_code = 2


class RunError(RuntimeError):
    """A run that cannot go on; the command line prints it and exits with 1."""

    exit_code = 1


class PreemptedError(BaseException):
    """SIGTERM stopped the run, and the run has been saved.

    It may come at any place, so no `except Exception` must take it for an
    error of what it interrupts.
    """

    exit_code = 143


def reason_of(error: BaseException) -> str:
    """Returns the first line of the message of an error, without its period.

    Example:

    >>> reason_of(ValueError("The header is damaged.\\nByte 7"))
    'The header is damaged'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")


class Mistakes:
    """Collects the mistakes of a caller, so that one error names them all.

    Example:

    ```python
    mistakes = Mistakes()
    for source in sources:
        with mistakes.collected(f"{source}: "):
            read(source)
    mistakes.check()
    ```
    """

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @contextlib.contextmanager
    def collected(self, prefix: str = "") -> Iterator[None]:
        """Keeps the lines of a `UsageError` of the block, each once."""
        try:
            yield
        except UsageError as error:
            for line in str(error).splitlines():
                self._lines[f"{prefix}{line}"] = None

    def check(self, prefix: str = "") -> None:
        """Raises if there was any mistake.

        Raises:
            UsageError: Names all mistakes, one a line.
        """
        if self._lines:
            raise UsageError(prefix + "\n".join(self._lines))
