"""Watches the other workers by one message per second over TCP.

TensorFlow notices a process that has died. But it waits forever for a process
that is frozen or that waits for its own input. Anyone may reach the port:
`Channel` keeps those out who do not know the secret of the training.
"""

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from keras_dml.distribute.channel import Channel
from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.giving_up import give_up as end_process

INTERVAL = 1.0
# Seconds to wait, so that TensorFlow can report a lost process first.
GRACE = 5.0
# What strangers get: seconds to show the secret, and connections at a time.
PATIENCE = 20.0
MOST_STRANGERS = 64
# Bytes that tell the progress of one worker.
ROW = 200
IN_STEP = ("input", "step")


class Progress(NamedTuple):
    """Where a worker is.

    Attributes:
        place: `"input"` or `"step"` within a step, `""` elsewhere.
        step: The number of the step.
        idle: Seconds without a change of either.
        age: Seconds since the worker said so.
    """

    place: str = ""
    step: int = 0
    idle: float = 0.0
    age: float = 0.0


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
        secret: What only the workers know.
        give_up: Function that receives a sentence about the problem. Defaults
            to `None`: print it and end the process with code 75.
    """

    def __init__(
        self,
        cluster: Cluster,
        timeout: float,
        server: socket.socket | None,
        port: int,
        secret: bytes,
        give_up: Callable[[str], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.timeout = timeout
        self._secret = secret
        self.give_up = give_up or end_process
        self.mark("", 0)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        # Per worker: its last message, and the time of the message.
        self._table: dict[int, tuple[Progress, float]] = {}
        # The time since when a worker is not connected.
        self._lost: dict[int, float] = {}
        # What of the chief this worker has never reached, and why.
        self._unreached = ""
        # Connections that have not shown the secret, the oldest first.
        self._strangers: dict[socket.socket, None] = {}
        if server is not None:
            self._thread(self._accept, server)
        else:
            self._thread(self._tell, cluster.hosts[0], port)
        self._thread(self._watch)

    @staticmethod
    def listen(cluster: Cluster) -> socket.socket:
        """Opens a listening socket on any free port of the chief's interface.

        On a machine itself, its name may stand for the loopback or for an
        address of a router. Then the socket listens on all interfaces.
        """
        own, alone = cluster.hosts[0], len({*cluster.hosts}) == 1
        with contextlib.suppress(OSError, ValueError):
            found = socket.getaddrinfo(own, 0, type=socket.SOCK_STREAM)
            family, *_, address = found[0]
            if alone or not ipaddress.ip_address(address[0]).is_loopback:
                return socket.create_server(address[:2], family=family)
        return socket.create_server(("", 0))

    def mark(self, place: str, count: int) -> None:
        """Records where this worker is, and in which step."""
        self._own = place, count, time.monotonic()

    def stop(self) -> None:
        """Stops watching."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether it has stopped."""
        return self._stopped.is_set()

    def problem(self) -> str | None:
        """Returns a sentence about a peer's problem, or `None`."""
        return self._absent(GRACE, self.timeout) or self._stuck()

    def suspect(self) -> str | None:
        """Returns a sentence about the peer that seems lost, or `None`.

        It judges at once, without the waiting times of `problem`.
        """
        return self._absent(0.0, 3 * INTERVAL)

    def _absent(self, lost, silent):
        """Names a peer that is lost or silent for more seconds, or `None`."""
        now = time.monotonic()
        with self._lock:
            broken = dict(self._lost)
        for index, since in broken.items():
            if now - since >= lost:
                if self._unreached:
                    return (
                        f"{self._name(index)} was never reached at "
                        f"{self._unreached}, by which workers watch each "
                        "other. The port is another at each start: let the "
                        "machines of the workers connect at all of them."
                    )
                return f"{self._name(index)} is gone."
        for index, peer in self._peers().items():
            if peer.age > silent:
                return (
                    f"{self._name(index)} has not answered for "
                    f"{peer.age:.0f} seconds: it is frozen or cannot be "
                    "reached."
                )
        return None

    def _stuck(self):
        """Returns a sentence if all workers are stuck in a step, or `None`."""
        table = self._everyone()
        if len(table) < len(self.cluster.addresses) or any(
            row.place not in IN_STEP or row.idle <= self.timeout
            for row in table.values()
        ):
            return None
        late = min(row.step for row in table.values())
        behind = [i for i, row in table.items() if row.step == late]
        reading = [i for i in behind if table[i].place == "input"]
        names = ", ".join(self._name(i) for i in sorted(reading or behind))
        what = "wait for their input" if reading else "do not end it"
        return (
            f"Step {late} has not ended for {self.timeout:g} seconds; these "
            f"{what}: {names}."
        )

    def _peers(self) -> dict[int, Progress]:
        """Returns the latest progress of the other workers."""
        with self._lock:
            now = time.monotonic()
            return {
                index: row._replace(age=now - heard)
                for index, (row, heard) in self._table.items()
            }

    def _everyone(self) -> dict[int, Progress]:
        """Returns the latest progress of all workers."""
        place, count, changed = self._own
        own = Progress(place, count, time.monotonic() - changed)
        return {**self._peers(), self.cluster.index: own}

    def _note(self, index, row):
        """Records the progress that another worker has told."""
        row = Progress(*row)
        with self._lock:
            self._table[index] = row, time.monotonic() - row.age
            self._lost.pop(index, None)

    def _lose(self, index):
        """Records since when a worker is not connected."""
        with self._lock:
            self._lost.setdefault(index, time.monotonic())

    def _accept(self, server):
        with server:
            # Nothing else wakes this thread once the heart has stopped.
            server.settimeout(INTERVAL)
            while not self._stopped.is_set():
                try:
                    link, _ = server.accept()
                except TimeoutError:
                    continue
                except OSError:
                    # All files are in use, or the socket is closed.
                    self._stopped.wait(INTERVAL)
                    continue
                self._welcome(link)

    def _welcome(self, link):
        """Hears a connection, and ends the oldest of too many strangers."""
        with self._lock:
            self._strangers[link] = None
            crowd = list(self._strangers)[:-MOST_STRANGERS]
            for oldest in crowd:
                self._strangers.pop(oldest)
                with contextlib.suppress(OSError):
                    # Wakes its thread, which closes it.
                    oldest.shutdown(socket.SHUT_RDWR)
        self._thread(self._hear, link)

    def _hear(self, link):
        """Runs on the chief: reads the messages of one worker."""
        index = None
        with contextlib.suppress(OSError, ValueError), link:
            channel = self._channel(link, listens=True)
            while True:
                index, row = channel.hear()
                self._known(link)
                self._note(index, row)
                channel.say(self._everyone())
        self._known(link)
        if index is not None:
            self._lose(index)

    def _known(self, link):
        """Takes a connection off the list of strangers."""
        with self._lock:
            self._strangers.pop(link, None)

    def _channel(self, link, listens):
        return Channel(
            link,
            self._secret,
            listens=listens,
            patience=PATIENCE if listens else self.timeout,
            # The chief reads one row, and the others read all.
            longest=ROW * (1 if listens else len(self.cluster.addresses)),
        )

    def _tell(self, host, port):
        """Runs on every other worker: sends messages to the chief."""
        self._note(0, Progress())
        never = True
        while not self._stopped.wait(INTERVAL):
            try:
                with socket.create_connection(
                    (host, port), self.timeout
                ) as link:
                    channel = self._channel(link, listens=False)
                    self._exchange(channel)
                    self._unreached, never = "", False
                    while not self._stopped.wait(INTERVAL):
                        self._exchange(channel)
            except (OSError, ValueError) as error:
                if never:
                    reason = getattr(error, "strerror", None) or error
                    self._unreached = f"port {port} of {host} ({reason})"
            self._lose(0)

    def _exchange(self, channel):
        own = self.cluster.index
        channel.say([own, self._everyone()[own]])
        for index, row in channel.hear().items():
            if int(index) != own:
                self._note(int(index), row)

    def _watch(self):
        while not self._stopped.wait(INTERVAL):
            found = self.problem()
            # Wait for one more exchange, so that the others learn of it too.
            if found is not None and not self._stopped.wait(2 * INTERVAL):
                self.give_up(found)
                return

    def _name(self, index):
        return f"Worker {index} ({self.cluster.addresses[index]})"

    def _thread(self, function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()
