"""Ends a worker that waits in vain, at the start or later."""

import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator

from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.errors import RESTART

logger = logging.getLogger("keras_dml")


@contextlib.contextmanager
def limit_start(cluster: Cluster, seconds: float) -> Iterator[None]:
    """Ends the process if not all workers join in time."""

    def late():
        missing = [
            f"worker {index} ({address})"
            for index, address in enumerate(cluster.addresses)
            if index != cluster.index and not _listens(address)
        ]
        give_up(
            f"The workers did not come together within {seconds:g} seconds. "
            f"Not started: {', '.join(missing) or 'none, but one hangs'}."
        )

    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _listens(address):
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        # An address of IPv6 stands in brackets.
        socket.create_connection((host.strip("[]"), int(port)), 2).close()
        return True
    return False


def give_up(sentence: str) -> None:
    """Says why this worker ends, and ends it with the code for a restart."""
    text = f"{sentence} Start all workers again with `resume=True`."
    record = logging.makeLogRecord({"levelname": "ERROR", "msg": text})
    # The filter of the command line names its options, not the arguments.
    logger.filter(record)
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.emit(record)
            handler.flush()
    print(f"Error: {record.getMessage()}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(RESTART)
