"""Errors of runs that a start with `resume=True` continues."""

from keras_dml.errors import RunError

# What the command exits with; a supervisor starts it again.
RESTART = 75
PREEMPTED = 143


class PeerLostError(RunError):
    """Another worker died, hangs or cannot be reached."""

    exit_code = RESTART


class PreemptedError(RunError):
    """The run was told to stop by SIGTERM, and has been saved."""

    exit_code = PREEMPTED
