"""Two workers of one process, which watch each other over real sockets."""

import contextlib
import socket
import time

import pytest

from keras_dml.distribute import heartbeat
from keras_dml.distribute.channel import Channel
from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.heartbeat import Heartbeat

TIMEOUT = 0.4
SECRET = b"known to the workers"
ADDRESSES = ("127.0.0.1:1", "127.0.0.1:2")


@pytest.fixture
def pair(monkeypatch):
    """The chief and another worker; what they complained about."""
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.02)
    monkeypatch.setattr(heartbeat, "GRACE", 0.1)
    said = []
    with both_of(TIMEOUT, said) as (chief, worker, _):
        yield chief, worker, said


@contextlib.contextmanager
def both_of(timeout, said):
    """The heartbeats of the chief and of another worker, and their port."""
    server = Heartbeat.listen(Cluster(ADDRESSES, 0, {}))
    port = server.getsockname()[1]
    both = [
        Heartbeat(
            Cluster(ADDRESSES, index, {}),
            timeout,
            server if index == 0 else None,
            port,
            SECRET,
            give_up=said.append,
        )
        for index in (0, 1)
    ]
    yield *both, port
    for one in both:
        one.stop()
    server.close()


def worker_channel(link, secret=SECRET):
    return Channel(link, secret, listens=False, patience=5.0, longest=1000)


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(f"not within {seconds} seconds")


def test_workers_that_answer_are_left_alone(pair):
    _, _, said = pair
    time.sleep(2 * TIMEOUT)
    assert not said


def test_slow_work_between_steps_is_no_hang(pair):
    chief, worker, said = pair
    chief.mark("step", 3)
    worker.mark("", 3)
    time.sleep(2 * TIMEOUT)
    assert not said


def test_a_step_that_does_not_end_names_who_waits_for_input(pair):
    chief, worker, said = pair
    chief.mark("step", 3)
    worker.mark("input", 3)
    wait_for(lambda: len(said) >= 2)
    for sentence in said:
        assert "Step 3 has not ended for 0.4 seconds" in sentence
        assert "wait for their input: Worker 1 (127.0.0.1:2)" in sentence


def test_a_worker_that_is_behind_is_named(pair):
    chief, worker, said = pair
    chief.mark("step", 3)
    worker.mark("step", 2)
    wait_for(lambda: said)
    assert "do not end it: Worker 1 (127.0.0.1:2)" in said[0]


def test_a_silent_worker_is_named(pair, monkeypatch):
    chief, worker, said = pair
    wait_for(lambda: 1 in chief._table)
    # It lives and is connected, but says nothing any more.
    monkeypatch.setattr(worker, "_exchange", lambda channel: time.sleep(9))
    time.sleep(5 * heartbeat.INTERVAL)
    silent = "Worker 1 (127.0.0.1:2) has not answered"
    assert silent in chief.suspect()
    # The silent one hears nothing either, and may complain first.
    wait_for(lambda: any(silent in sentence for sentence in said))


def test_a_worker_that_is_gone_is_named(pair):
    chief, worker, said = pair
    wait_for(lambda: 1 in chief._table)
    assert chief.suspect() is None
    worker.stop()
    wait_for(lambda: said)
    assert chief.suspect() == said[0]
    assert said[0] == "Worker 1 (127.0.0.1:2) is gone."


def test_a_port_that_is_closed_is_no_worker_that_is_gone(monkeypatch):
    """A firewall made it "gone" at each of the restarts."""
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.02)
    monkeypatch.setattr(heartbeat, "GRACE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = []
    cluster = Cluster(ADDRESSES, 1, {})
    worker = Heartbeat(cluster, 99.0, None, port, SECRET, said.append)
    wait_for(lambda: said)
    worker.stop()
    assert "Worker 0 (127.0.0.1:1) was never reached at port" in said[0]
    assert f"{port} of 127.0.0.1 (Connection refused)" in said[0]


def test_a_worker_that_comes_back_is_not_gone(monkeypatch):
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.02)
    monkeypatch.setattr(heartbeat, "GRACE", 1.0)
    said = []

    @contextlib.contextmanager
    def connect(port):
        with socket.create_connection(("127.0.0.1", port)) as link:
            channel = worker_channel(link)
            channel.say([1, ["", 0, 0.0, 0.0]])
            assert channel.hear()
            yield

    cluster = Cluster(ADDRESSES, 0, {})
    with Heartbeat.listen(cluster) as server:
        port = server.getsockname()[1]
        chief = Heartbeat(cluster, 99.0, server, port, SECRET, said.append)
        with connect(port):
            assert not chief._lost
        wait_for(lambda: chief._lost)
        with connect(port):
            time.sleep(1.5 * heartbeat.GRACE)
        assert not said
        chief.stop()


def test_a_connection_that_breaks_is_made_again(pair, monkeypatch):
    chief, worker, said = pair
    monkeypatch.setattr(heartbeat, "GRACE", 1.0)
    wait_for(lambda: 1 in chief._table)
    exchange = worker._exchange

    def breaks(channel):
        monkeypatch.setattr(worker, "_exchange", exchange)
        raise ConnectionResetError

    monkeypatch.setattr(worker, "_exchange", breaks)
    wait_for(lambda: chief._lost)
    wait_for(lambda: not chief._lost and not worker._lost)
    assert not said


def test_a_chief_that_stops_takes_no_more_connections(monkeypatch):
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.02)
    with both_of(TIMEOUT, []) as (chief, worker, port):
        wait_for(lambda: 1 in chief._table)
        chief.stop()
        worker.stop()

        def refused():
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return True
            return False

        wait_for(refused)


def test_a_worker_that_stops_watching_complains_no_more(pair):
    chief, worker, said = pair
    wait_for(lambda: 1 in chief._table)
    chief.stop()
    worker.stop()
    time.sleep(0.5)
    assert not said
