"""Errors after which `resume=True` continues a run."""

from keras_dml.errors import PreemptedError, RunError

# Exit codes of the command, after which a supervisor starts it again.
RESTART = 75
PREEMPTED = PreemptedError.exit_code


class PeerLostError(RunError):
    """Another worker died, hangs or cannot be reached."""

    exit_code = RESTART
