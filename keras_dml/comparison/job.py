"""One training of a plan: `python -m keras_dml.comparison.job SETTINGS RUN`."""

import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from keras_dml.errors import RunError, UsageError

DISK_FULL = 74


def main(settings: str, folder: str) -> None:
    """Trains and measures a run; goes on where it was interrupted."""
    threading.Thread(target=_stop_with_starter, daemon=True).start()
    from keras_dml.config import load_run_config
    from keras_dml.distribute import PreemptedError
    from keras_dml.run import fit as train

    try:
        train.fit(load_run_config(Path(settings)), folder, resume=True)
    except PreemptedError as error:
        _leave(error, error.exit_code)
    except UsageError as error:
        _leave(error, 2)
    except RunError as error:
        _leave(error, 1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _leave(error, DISK_FULL)


def _stop_with_starter() -> None:
    """The starter's end of the pipe closes when it dies, however it dies."""
    # Not `sys.stdin`, whose lock would be held when the process ends.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(error: BaseException, code: int) -> NoReturn:
    print(f"Error: {error}", file=sys.stderr, flush=True)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
