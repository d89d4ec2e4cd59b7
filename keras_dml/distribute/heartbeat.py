"""Watches the other workers by one message per second over TCP.

TensorFlow notices a process that has died. But it waits forever for a process
that is frozen or that waits for its own input.
"""

import contextlib
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.errors import RESTART

logger = logging.getLogger("keras_dml")

INTERVAL = 1.0
# Seconds to wait, so that TensorFlow can report a lost process first.
GRACE = 5.0
IN_STEP = ("input", "step")


class Heartbeat:
    """Reports this worker's progress every second and watches the others.

    Every worker sends its progress to the chief, and the chief answers with
    the progress of all workers, so that every worker can name the one that
    hangs. A worker that finds a problem prints it and ends its process,
    because the main thread may wait in a collective that never returns.

    Args:
        cluster: The workers.
        timeout: Seconds after which a silent worker, or a step that does not
            end, is a problem.
        server: The listening socket of the chief; `None` on the others.
        port: The port of this socket.
        give_up: Function that receives a sentence about the problem. Defaults
            to `None`: print it and end the process with code 75.
    """

    def __init__(
        self,
        cluster: Cluster,
        timeout: float,
        server: socket.socket | None,
        port: int,
        give_up: Callable[[str], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.timeout = timeout
        self.give_up = give_up or _give_up
        self._place, self._count, self._changed = "", 0, time.monotonic()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        # Per worker: place, count, seconds without change, time of message.
        self._table: dict[int, list[Any]] = {}
        self._lost: dict[int, float] = {}
        if server is not None:
            self._thread(self._accept, server)
        else:
            host = cluster.addresses[0].rpartition(":")[0]
            self._thread(self._tell, host, port)
        self._thread(self._watch)

    @staticmethod
    def listen() -> socket.socket:
        """Opens a listening socket on any free port."""
        server = socket.create_server(("", 0))
        return server

    def mark(self, place: str, count: int) -> None:
        """Records where this worker is, and in which step."""
        self._place, self._count = place, count
        self._changed = time.monotonic()

    def stop(self) -> None:
        """Stops watching."""
        self._stopped.set()

    def problem(self) -> str | None:
        """Returns a sentence about a peer's problem, or `None`."""
        now = time.monotonic()
        with self._lock:
            table = {i: list(row) for i, row in self._table.items()}
            lost = dict(self._lost)
        for index, since in lost.items():
            if now - since > GRACE:
                return f"{self._name(index)} is gone."
        for index, row in table.items():
            if now - row[3] > self.timeout:
                return self._silence(index, f"{self.timeout:g}")
        return self._stuck(table)

    def suspect(self) -> str | None:
        """Returns a sentence about the peer that seems lost, or `None`.

        It judges at once, without the waiting times of `problem`.
        """
        now = time.monotonic()
        with self._lock:
            silent = [(now - row[3], i) for i, row in self._table.items()]
        for index in self._lost:
            return f"{self._name(index)} is gone."
        seconds, index = max(silent, default=(0.0, 0))
        if seconds < 3 * INTERVAL:
            return None
        return self._silence(index, f"{seconds:.0f}")

    def _stuck(self, table):
        """Returns a sentence if all workers are stuck in a step, or `None`."""
        table[self.cluster.index] = self._own()
        everyone = len(self.cluster.addresses)
        inside = [row for row in table.values() if row[0] in IN_STEP]
        if len(inside) < everyone or (
            min(row[2] for row in inside) <= self.timeout
        ):
            return None
        late = min(row[1] for row in inside)
        behind = [i for i, row in table.items() if row[1] == late]
        reading = [i for i in behind if table[i][0] == "input"]
        names = ", ".join(self._name(i) for i in sorted(reading or behind))
        what = "wait for their input" if reading else "do not end it"
        return (
            f"Step {late} has not ended for {self.timeout:g} seconds; these "
            f"{what}: {names}."
        )

    def _own(self):
        now = time.monotonic()
        return [self._place, self._count, now - self._changed, now]

    def _accept(self, server):
        while not self._stopped.is_set():
            connection, _ = server.accept()
            self._thread(self._hear, connection)

    def _hear(self, connection):
        """Runs on the chief: reads the messages of one worker."""
        index = None
        with (
            contextlib.suppress(OSError, ValueError),
            connection,
            connection.makefile("rw") as stream,
        ):
            for line in stream:
                said = json.loads(line)
                index = said["worker"]
                self._note(index, said["row"])
                stream.write(json.dumps(self._answer()) + "\n")
                stream.flush()
        if index is not None:
            self._lost[index] = time.monotonic()

    def _answer(self):
        with self._lock:
            now = time.monotonic()
            rows = {
                index: [*row[:3], now - row[3]]
                for index, row in self._table.items()
            }
        rows[self.cluster.index] = [*self._own()[:3], 0.0]
        return rows

    def _tell(self, host, port):
        """Runs on every other worker: sends messages to the chief."""
        self._note(0, ["", 0, 0.0])
        with (
            contextlib.suppress(OSError, ValueError),
            socket.create_connection((host, port), self.timeout) as link,
        ):
            # No timeout here: `problem` judges silence by the clock.
            link.settimeout(None)
            with link.makefile("rw") as stream:
                while not self._stopped.wait(INTERVAL):
                    self._exchange(stream)
        self._lost[0] = time.monotonic()

    def _exchange(self, stream):
        said = {"worker": self.cluster.index, "row": self._own()[:3]}
        stream.write(json.dumps(said) + "\n")
        stream.flush()
        for index, row in json.loads(stream.readline()).items():
            if int(index) != self.cluster.index:
                self._note(int(index), row[:3], age=row[3])

    def _note(self, index, row, age=0.0):
        with self._lock:
            self._table[index] = [*row, time.monotonic() - age]

    def _watch(self):
        while not self._stopped.wait(INTERVAL):
            found = self.problem()
            if found is None:
                continue
            # Wait for one more exchange, so that the others learn of it too.
            if not self._stopped.wait(2 * INTERVAL):
                self.give_up(found)
                return

    def _silence(self, index, seconds):
        return (
            f"{self._name(index)} has not answered for {seconds} seconds: it "
            "is frozen or cannot be reached."
        )

    def _name(self, index):
        return f"Worker {index} ({self.cluster.addresses[index]})"

    def _thread(self, function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()


@contextlib.contextmanager
def limit_start(cluster: Cluster, seconds: float) -> Iterator[None]:
    """Ends the process if not all workers join in time."""

    def late():
        missing = [
            f"worker {index} ({address})"
            for index, address in enumerate(cluster.addresses)
            if index != cluster.index and not _listens(address)
        ]
        _give_up(
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
        socket.create_connection((host, int(port)), 2).close()
        return True
    return False


def _give_up(sentence):
    record = logger.makeRecord(
        logger.name,
        logging.ERROR,
        "",
        0,
        f"{sentence} Start all workers again with `resume=True`.",
        (),
        None,
    )
    # The filter of the command line names its options, not the arguments.
    logger.filter(record)
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.emit(record)
            handler.flush()
    print(f"Error: {record.getMessage()}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(RESTART)
