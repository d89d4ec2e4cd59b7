"""Exchanges values between the processes of one training.

With one process, which is the usual case, these functions return the values of
this process unchanged.
"""

import contextlib
import functools
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from keras_dml.distribute.cluster import Cluster
from keras_dml.distribute.errors import PeerLostError
from keras_dml.distribute.giving_up import limit_start
from keras_dml.distribute.heartbeat import INTERVAL, Heartbeat
from keras_dml.errors import RunError, UsageError

Result = TypeVar("Result")

# Sums are padded to powers of 2 between these, so that few sizes are traced.
SMALLEST, LARGEST = 1 << 10, 1 << 22


class Session:
    """Holds the multi-worker strategy of this process, and its peers.

    Args:
        strategy: `tf.distribute.MultiWorkerMirroredStrategy`.
        cluster: The workers.

    Attributes:
        heartbeat: `Heartbeat` that watches the workers, once all have joined.
    """

    heartbeat: Heartbeat

    def __init__(self, strategy: Any, cluster: Cluster) -> None:
        self.strategy = strategy
        self.cluster = cluster

    def sum(self, words: np.ndarray) -> np.ndarray:
        """Sums int64 vectors of equal length over the workers."""
        parts = [
            self._sum_part(words[start : start + LARGEST])
            for start in range(0, len(words), LARGEST)
        ]
        return np.concatenate([words[:0], *parts])

    def _sum_part(self, words):
        import tensorflow as tf

        size = max(SMALLEST, 1 << (len(words) - 1).bit_length())
        padded = np.zeros(size, np.int64)
        padded[: len(words)] = words
        local = len(self.strategy.extended.worker_devices)

        def value(context):
            # The other replicas of a worker add zeros.
            first = context.replica_id_in_sync_group % local == 0
            return tf.constant(padded if first else np.zeros_like(padded))

        strategy = self.strategy
        values = strategy.experimental_distribute_values_from_function(value)
        total = _traced_sum(strategy, size)(values)
        copies = strategy.experimental_local_results(total)
        return copies[0].numpy()[: len(words)]


_session: Session | None = None


def start(cluster: Cluster, peer_timeout: float) -> Any:
    """Joins the workers of a cluster; returns when all have joined.

    Args:
        cluster: The workers.
        peer_timeout: Seconds after which a silent worker ends the run.

    Returns:
        The `tf.distribute.MultiWorkerMirroredStrategy` of this process.

    Raises:
        UsageError: If this worker's port is taken.
    """
    global _session
    if _session is not None:
        if _session.heartbeat.stopped:
            _session.heartbeat = _watch(cluster, peer_timeout)
        return _session.strategy
    import tensorflow as tf

    cluster.check_port()
    os.environ["TF_CONFIG"] = json.dumps(cluster.config)
    with limit_start(cluster, 5 * peer_timeout):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        _session = Session(strategy, cluster)
        # Its `broadcast` is the first collective: it waits for every worker.
        _session.heartbeat = _watch(cluster, peer_timeout)
    return strategy


def _watch(cluster: Cluster, peer_timeout: float) -> Heartbeat:
    server = Heartbeat.listen(cluster) if is_chief() else None
    told = server and (server.getsockname()[1], secrets.token_hex(32))
    port, secret = broadcast(told)
    return Heartbeat(cluster, peer_timeout, server, port, bytes.fromhex(secret))


def finish() -> None:
    """Stops watching the peers; call it when no worker waits for another."""
    if _session is not None:
        _session.heartbeat.stop()


@contextlib.contextmanager
def losing_peers() -> Iterator[None]:
    """Turns TensorFlow's errors about lost workers into `PeerLostError`.

    Raises:
        PeerLostError: If a worker is gone.
    """
    if _session is None:
        yield
        return
    import tensorflow as tf

    lost = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
        tf.errors.FailedPreconditionError,
        tf.errors.InternalError,
    )
    try:
        yield
    except lost as error:
        time.sleep(2 * INTERVAL)
        found = _session.heartbeat.suspect()
        if found is None and "ollective" not in str(error):
            raise
        raise PeerLostError(
            f"{found or 'Another worker is gone.'} Start all workers again "
            "with `resume=True`."
        ) from error


def mark(place: str, count: int = 0) -> None:
    """Records this worker's progress for the workers that watch it.

    Args:
        place: `"input"` or `"step"` within a step, where the workers wait
            for each other; `""` elsewhere.
        count: The number of the step. Defaults to `0`.
    """
    if _session is not None:
        _session.heartbeat.mark(place, count)


def num_workers() -> int:
    """Returns the number of processes that train together."""
    return 1 if _session is None else len(_session.cluster.addresses)


def worker_index() -> int:
    """Returns the index of this process; 0 without a cluster."""
    return 0 if _session is None else _session.cluster.index


def worker_name(index: int) -> str:
    """Returns a worker's name for messages."""
    if _session is None:
        return f"worker {index}"
    return f"worker {index} ({_session.cluster.addresses[index]})"


def is_chief() -> bool:
    """Returns whether this process writes and prints for all workers."""
    return worker_index() == 0


def own_rows(count: int) -> np.ndarray:
    """Returns this worker's contiguous part of `count` rows.

    Args:
        count: Number of rows of all workers together.

    Returns:
        int64 array; `gather_rows` joins the parts again.
    """
    return np.array_split(np.arange(count), num_workers())[worker_index()]


def gather_bytes(payload: bytes) -> list[bytes]:
    """Returns the bytes of every worker, in their order, on every worker."""
    if _session is None:
        return [payload]
    count, index = num_workers(), worker_index()
    lengths = np.zeros(count, np.int64)
    lengths[index] = len(payload)
    lengths = _session.sum(lengths)
    sizes = -(-lengths // 8)
    ends = np.cumsum(sizes)
    words = np.zeros(ends[-1], np.int64)
    own = np.frombuffer(payload.ljust(8 * sizes[index], b"\0"), np.int64)
    words[ends[index] - sizes[index] : ends[index]] = own
    # All other workers hold zeros in these places, so the sum is the value.
    words = _session.sum(words)
    return [
        words[end - size : end].tobytes()[:length]
        for end, size, length in zip(ends, sizes, lengths, strict=True)
    ]


def gather(value: Any) -> list[Any]:
    """Returns the JSON-able value of every worker, in their order."""
    if _session is None:
        return [value]
    parts = gather_bytes(json.dumps(value).encode())
    return [json.loads(part) for part in parts]


def broadcast(value: Any) -> Any:
    """Returns the JSON-able value of the chief, on every worker."""
    if _session is None:
        return value
    payload = json.dumps(value).encode() if is_chief() else b""
    return json.loads(gather_bytes(payload)[0])


def gather_rows(rows: np.ndarray) -> np.ndarray:
    """Concatenates the rows of the workers, in their order.

    Args:
        rows: Array `(n, ...)`, where `n` may differ between workers.

    Returns:
        Array `(sum of n, ...)`.
    """
    if _session is None:
        return rows
    rows = np.ascontiguousarray(rows)
    parts = gather_bytes(rows.tobytes())
    shape = (-1, *rows.shape[1:])
    joined = np.frombuffer(b"".join(parts), rows.dtype)
    return joined.reshape(shape) if joined.size else rows[:0]


def together(function: Callable[[], Result]) -> Result:
    """Calls a function on every worker; an error on one is raised on all.

    Args:
        function: Function without arguments, which needs no other worker.

    Returns:
        The result of the function on this worker.

    Raises:
        UsageError: If the function raised it on any worker.
        RunError: If the function raised it on any worker.
    """
    if _session is None:
        return function()
    result, failure, said = None, None, None
    try:
        result = function()
    except (UsageError, RunError) as error:
        failure, said = error, [isinstance(error, UsageError), str(error)]
    outcomes = gather(said)
    if failure is not None:
        raise failure
    for index, outcome in enumerate(outcomes):
        if outcome is not None:
            kind = UsageError if outcome[0] else RunError
            raise kind(f"On {worker_name(index)}: {outcome[1]}")
    return result  # type: ignore[return-value]


@functools.cache
def _traced_sum(strategy, size):
    """Returns a function for vectors of one size, so that it traces once."""
    import tensorflow as tf

    def add(words):
        context = tf.distribute.get_replica_context()
        # `identity` places the input on a device; otherwise it fails.
        return context.all_reduce("SUM", tf.identity(words))

    @tf.function(autograph=False)
    def total(values):
        return strategy.run(add, args=(values,))

    return total
