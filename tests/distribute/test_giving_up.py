"""Ends a worker that waits in vain."""

from keras_dml.distribute import giving_up
from keras_dml.distribute.cluster import Cluster
from tests.distribute.test_heartbeat import ADDRESSES, wait_for


def test_workers_that_never_come_are_named(monkeypatch, capsys):
    left = []
    monkeypatch.setattr(giving_up.os, "_exit", left.append)
    cluster = Cluster(ADDRESSES, 0, {})
    with giving_up.limit_start(cluster, 0.05):
        wait_for(lambda: left)
    assert left == [75]
    error = capsys.readouterr().err
    assert "Not started: worker 1 (127.0.0.1:2)." in error
    assert "`resume=True`" in error
