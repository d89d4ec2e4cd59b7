"""Strangers at the port of the heartbeat: they learn and change nothing."""

import contextlib
import socket
import time

import pytest

from keras_dml.distribute import heartbeat
from keras_dml.distribute.channel import Channel
from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.heartbeat import Heartbeat
from tests.distribute.test_heartbeat import (
    SECRET,
    both_of,
    wait_for,
    worker_channel,
)

GARBAGE = {
    "nothing": b"",
    "one byte": b"\0",
    "lines": b"\n" * 10_000,
    "http": b"GET / HTTP/1.1\r\nHost: chief\r\n\r\n",
    "the old protocol": b'[1, ["step", 3, 0.0, 0.0]]\n' * 3,
    "nested": b"[" * 100_000 + b"\n",
    "long line": b"x" * 1_000_000,
    "random": bytes(range(256)) * 1000,
}


@pytest.fixture
def attacked(monkeypatch):
    """Two workers that answer each other, their port, and the complaints."""
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.05)
    monkeypatch.setattr(heartbeat, "GRACE", 1.0)
    monkeypatch.setattr(heartbeat, "PATIENCE", 0.5)
    said = []
    with both_of(2.0, said) as (chief, worker, port):
        wait_for(lambda: 1 in chief._table)
        yield chief, worker, port, said
        # Both still hear each other, and nobody was named.
        told = chief._table[1][1], worker._table[0][1]
        wait_for(
            lambda: (
                (chief._table[1][1] > told[0])
                and (worker._table[0][1] > told[1])
            )
        )
        assert not said
        assert chief.suspect() is None and worker.suspect() is None
        assert {*chief._table} == {1}
        wait_for(lambda: not chief._strangers)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 5)


def everything(link):
    """What the chief sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := link.recv(4096):
            received += piece
    return received


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage(attacked, name):
    _, _, port, _ = attacked
    with connect(port) as link:
        with contextlib.suppress(ConnectionError):
            link.sendall(GARBAGE[name])
        # A random number, and no word about the training.
        assert len(everything(link)) <= 33


def test_of_too_many_strangers_the_oldest_are_left(attacked, monkeypatch):
    chief, _, port, _ = attacked
    # Whom nobody else could have made leave.
    monkeypatch.setattr(heartbeat, "PATIENCE", 60.0)
    beyond = 20
    with contextlib.ExitStack() as stack:
        links = []
        for number in range(heartbeat.MOST_STRANGERS + beyond):
            links.append(stack.enter_context(connect(port)))
            # The order in which they are welcomed is that of their calls.
            wait_for(
                lambda number=number: (
                    len(chief._strangers)
                    == min(number + 1, heartbeat.MOST_STRANGERS)
                )
            )
        for link in links[:beyond]:
            everything(link)
        assert len(chief._strangers) == heartbeat.MOST_STRANGERS


def test_a_worker_comes_back_through_a_crowd(attacked, monkeypatch):
    chief, worker, port, said = attacked
    with contextlib.ExitStack() as stack:
        for _ in range(2 * heartbeat.MOST_STRANGERS):
            stack.enter_context(connect(port))
        exchange = worker._exchange

        def breaks(channel):
            monkeypatch.setattr(worker, "_exchange", exchange)
            raise ConnectionResetError

        monkeypatch.setattr(worker, "_exchange", breaks)
        wait_for(lambda: worker._exchange is exchange)
        wait_for(lambda: not chief._lost and not worker._lost)
        assert not said


def test_slow_ones_are_left(attacked):
    """A byte now and then holds no connection for longer than `PATIENCE`."""
    _, _, port, _ = attacked
    started = time.monotonic()
    with connect(port) as link, pytest.raises(OSError):
        while time.monotonic() < started + 5:
            link.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("message", [[0, ["step", 9, 0.0, 0.0]], [1, []]])
def test_another_secret(attacked, message):
    chief, _, port, _ = attacked
    with connect(port) as link:
        channel = worker_channel(link, b"another secret")
        channel.say(message)
        with pytest.raises(OSError):
            channel.hear()
    assert not chief._lost


class Recorded:
    """A connection that remembers what was sent."""

    def __init__(self, link):
        self._link = link
        self.settimeout, self.recv = link.settimeout, link.recv
        self.sent = []

    def sendall(self, data):
        self.sent.append(data)
        self._link.sendall(data)


def test_replayed_messages(attacked):
    """All of a worker's messages again, on another connection and the same."""
    chief, _, port, _ = attacked
    with connect(port) as link:
        recorded = Recorded(link)
        channel = worker_channel(recorded)
        channel.say([1, ["step", 7, 0.0, 0.0]])
        assert channel.hear()
        with connect(port) as other:
            other.sendall(b"".join(recorded.sent))
            assert len(everything(other)) <= 33
        # The chief ends this connection, whose worker it then waits for.
        link.sendall(recorded.sent[-1])
        assert everything(link) == b""
    # The worker itself still speaks.
    wait_for(lambda: not chief._lost)


def test_a_false_chief_is_not_believed():
    """It sends back what it heard, and what the true chief once said."""
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"0" * 32 + b"\n")
        channel = worker_channel(one)
        channel.say([1, ["", 0, 0.0, 0.0]])
        sent = other.recv(10_000).split(b"\n")
        other.sendall(sent[1] + b"\n")
        with pytest.raises(ConnectionError, match="does not know the secret"):
            channel.hear()


def test_a_message_is_bounded():
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"0" * 32 + b"\n" + b"x" * 100_000)
        channel = Channel(one, SECRET, listens=True, patience=1.0, longest=1000)
        with pytest.raises(ConnectionError, match="too long"):
            channel.hear()


@pytest.mark.parametrize(
    "hosts, address",
    [
        (("127.0.0.1", "127.0.0.1"), "127.0.0.1"),
        # This machine's name stands for the loopback: others cannot reach it.
        (("localhost", "elsewhere"), "0.0.0.0"),
        # The address of a router, and a name that nobody knows.
        (("192.0.2.1", "192.0.2.2"), "0.0.0.0"),
        (("nowhere.invalid", "elsewhere"), "0.0.0.0"),
        (("[::1]", "[::1]"), "::1"),
    ],
)
def test_the_port_is_open_where_the_workers_are(hosts, address):
    addresses = tuple(f"{host}:{n}" for n, host in enumerate(hosts, 1))
    with Heartbeat.listen(Cluster(addresses, 0, {})) as server:
        assert server.getsockname()[0] == address
