"""Errors after which `resume=True` continues a run."""

from keras_dml.errors import RunError

# Exit codes of the command, after which a supervisor starts it again.
RESTART = 75
PREEMPTED = 143


class PeerLostError(RunError):
    """Another worker died, hangs or cannot be reached."""

    exit_code = RESTART


class PreemptedError(RunError):
    """SIGTERM stopped the run, and the run has been saved."""

    exit_code = PREEMPTED
