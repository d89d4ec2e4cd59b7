import json
import socket

import pytest

from keras_dml.distribute import read_cluster
from keras_dml.errors import UsageError

TWO = ["host0:2222", "host1:2222"]


def environment(cluster, task):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def test_no_variable_is_no_cluster():
    assert read_cluster({}) is None
    assert read_cluster({"TF_CONFIG": " "}) is None
    assert read_cluster({"TF_CONFIG": "{}"}) is None
    assert read_cluster({}, slurm=True) is None


def test_workers_are_numbered_in_order():
    task = {"type": "worker", "index": 1}
    cluster = read_cluster(environment({"worker": TWO}, task))
    assert cluster.addresses == tuple(TWO)
    assert cluster.index == 1


def test_a_chief_is_the_first_worker():
    jobs = {"worker": TWO, "chief": ["boss:2222"]}
    worker = read_cluster(environment(jobs, {"type": "worker", "index": "0"}))
    chief = read_cluster(environment(jobs, {"type": "chief", "index": 0}))
    assert worker.addresses == chief.addresses == ("boss:2222", *TWO)
    assert (chief.index, worker.index) == (0, 1)


@pytest.mark.parametrize(
    "cluster, task, message",
    [
        (None, {"type": "worker", "index": 0}, "`cluster` names no workers"),
        ({}, {"type": "worker", "index": 0}, "`cluster` names no workers"),
        ({"worker": []}, {"type": "worker", "index": 0}, "names no workers"),
        (
            {"chief": ["a:1"], "worker": []},
            {"type": "worker", "index": 0},
            "`cluster.worker` is empty",
        ),
        ({"worker": TWO}, None, "`task` needs `type` and `index`"),
        ({"worker": TWO}, {"type": "worker"}, "needs `type` and `index`"),
        ({"worker": TWO}, {"type": "chief", "index": 0}, "'chief' is not in"),
        ({"worker": TWO}, {"type": "worker", "index": 2}, r"2 must be in 0..1"),
        ({"worker": TWO}, {"type": "worker", "index": -1}, "must be in 0..1"),
        ({"worker": TWO}, {"type": "worker", "index": None}, "must be in 0..1"),
        ({"worker": TWO}, {"type": "worker", "index": True}, "in 0..1"),
        ({"worker": TWO}, {"type": "worker", "index": "\u00b2"}, "in 0..1"),
        ({"worker": TWO}, {"type": "worker", "index": "9" * 5000}, "in 0..1"),
        ({"worker": TWO}, {"type": ["worker"], "index": 0}, "is not in"),
        ({"worker": ["a"]}, {"type": "worker", "index": 0}, "of host:port"),
        ({"worker": ["a:0"]}, {"type": "worker", "index": 0}, "of host:port"),
        ({"worker": ["a:99999"]}, {"type": "worker", "index": 0}, "host:port"),
        ({"worker": "a:1"}, {"type": "worker", "index": 0}, "of host:port"),
        (
            {"worker": ["a:1"] * 2},
            {"type": "worker", "index": 0},
            "there twice",
        ),
        (
            {"worker": TWO, "evaluator": ["b:1"]},
            {"type": "worker", "index": 0},
            "unknown job 'evaluator'",
        ),
        (
            {"worker": TWO, "chief": ["b:1", "c:1"]},
            {"type": "worker", "index": 0},
            "more than one chief",
        ),
        (
            {"worker": TWO, "ps": ["b:1"]},
            {"type": "worker", "index": 0},
            "Parameter servers are not supported",
        ),
    ],
)
def test_a_broken_cluster_is_named(cluster, task, message):
    with pytest.raises(UsageError, match=message):
        read_cluster(environment(cluster, task))


@pytest.mark.parametrize("text", ["{", "[]", "worker0:2222", "[" * 99_999])
def test_a_broken_text_is_shown_beside_a_right_one(text):
    with pytest.raises(UsageError) as refused:
        read_cluster({"TF_CONFIG": text})
    assert f"Received: {text[:300]}" in str(refused.value)
    assert '"index": 0' in str(refused.value)


def test_slurm_says_it_where_there_is_no_variable(monkeypatch):
    for name, value in {
        "PROCID": "2",
        "STEP_NUM_TASKS": "4",
        "STEP_NODELIST": "node[01-02]",
        "STEP_TASKS_PER_NODE": "2(x2)",
    }.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert read_cluster() is None
    cluster = read_cluster(slurm=True)
    assert cluster.index == 2
    assert cluster.addresses == (
        "node01:8888",
        "node01:8889",
        "node02:8888",
        "node02:8889",
    )


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        cluster = read_cluster(
            environment({"worker": [address]}, {"type": "worker", "index": 0})
        )
        with pytest.raises(UsageError, match="Worker 0 cannot listen at"):
            cluster.check_port()
    cluster.check_port()
