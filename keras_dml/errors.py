"""Errors that the command line turns into exit codes."""


class UsageError(ValueError):
    """The caller's mistake; the command line prints it and exits with 2."""

    exit_code = 2


class RunError(RuntimeError):
    """A run that cannot go on; the command line prints it and exits with 1."""

    exit_code = 1
