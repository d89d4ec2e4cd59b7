"""Reads from `TF_CONFIG` or Slurm which machines train together."""

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_dml.errors import UsageError
from keras_dml.naming import shown

EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
SLURM_PORT = 8888
NO_PARAMETER_SERVERS = (
    "Parameter servers are not supported: Keras 3 cannot train with them."
)


@dataclass(frozen=True)
class Cluster:
    """Lists the workers of a training; the first one is the chief.

    Attributes:
        addresses: `host:port` of every worker.
        index: The position of this process in `addresses`.
        config: The same cluster as a dict in the form of `TF_CONFIG`.
    """

    addresses: tuple[str, ...]
    index: int
    config: dict[str, Any]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of every worker, without its port."""
        return tuple(
            address.rpartition(":")[0].strip("[]") for address in self.addresses
        )

    def check_port(self) -> None:
        """Raises if another process listens at this worker's port.

        Raises:
            UsageError: If the port is taken.
        """
        address = self.addresses[self.index]
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", int(address.rpartition(":")[2])))
            except OSError as error:
                raise UsageError(
                    f"Worker {self.index} cannot listen at {address}: "
                    f"{error.strerror}. Give every process its own `index` in "
                    "TF_CONFIG, and wait until an earlier run has ended."
                ) from error


def read_cluster(
    environment: Mapping[str, str] | None = None, slurm: bool = False
) -> Cluster | None:
    """Reads the cluster from the environment.

    Args:
        environment: The variables. Defaults to `None`: those of the process.
        slurm: Whether to ask Slurm if `TF_CONFIG` is not set. Defaults to
            `False`.

    Returns:
        The cluster, or `None` if the environment names no cluster.

    Raises:
        UsageError: If `TF_CONFIG` cannot be read.
    """
    environment = os.environ if environment is None else environment
    text = environment.get("TF_CONFIG", "").strip()
    if text:
        return _from_config(_parse(text))
    if slurm and "SLURM_STEP_NODELIST" in environment:
        return _from_slurm()
    return None


def _parse(text):
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(f"it is not JSON ({error})", text) from error
    if not isinstance(config, dict):
        raise _broken("it is not a JSON object", text)
    return config


def _from_config(config):
    cluster, task = config.get("cluster"), config.get("task")
    if cluster is None and "task" not in config:
        return None
    jobs = cluster if isinstance(cluster, dict) else {}
    if "ps" in jobs:
        raise UsageError(
            f"{NO_PARAMETER_SERVERS} Received: TF_CONFIG with a `ps` job. Use "
            "`worker` jobs only, and `strategy='multi_worker'`."
        )
    for name, addresses in jobs.items():
        if name not in ("chief", "worker"):
            raise _broken(f"`cluster` has the unknown job {name!r}", config)
        if not isinstance(addresses, list) or not all(map(_usable, addresses)):
            raise _broken(f"`cluster.{name}` is no list of host:port", config)
    chiefs, workers = jobs.get("chief", []), jobs.get("worker", [])
    addresses = (*chiefs, *workers)
    if len(chiefs) > 1:
        raise _broken("there is more than one chief", config)
    if not addresses:
        raise _broken("`cluster` names no workers", config)
    if len(set(addresses)) < len(addresses):
        raise _broken("an address is there twice", config)
    if not isinstance(task, dict) or not {"type", "index"} <= task.keys():
        raise _broken("`task` needs `type` and `index`", config)
    kind, index = task["type"], task["index"]
    if kind not in list(jobs):
        raise _broken(f"`task.type` {kind!r} is not in `cluster`", config)
    if not jobs[kind]:
        raise _broken(f"`cluster.{kind}` is empty", config)
    known = range(len(jobs[kind]))
    # It may also be a text.
    if type(index) not in (int, str) or str(index) not in map(str, known):
        raise _broken(
            f"`task.index` {shown(index)} must be in 0..{known[-1]}", config
        )
    # The chief is the first worker.
    offset = len(chiefs) if kind == "worker" else 0
    return Cluster(addresses, offset + int(index), config)


def _usable(address):
    port = address.rpartition(":")[2] if isinstance(address, str) else ""
    return re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16


def _from_slurm():
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=SLURM_PORT,
            # Slurm itself assigns GPUs to every task.
            gpus_per_node=1_000_000,
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        jobs = resolver.cluster_spec().as_dict()
        kind, index = resolver.get_task_info()
    except (RuntimeError, ValueError, KeyError) as error:
        raise UsageError(
            f"The cluster cannot be read from Slurm: {error}. Start the "
            "workers with `srun`, or set TF_CONFIG."
        ) from error
    return _from_config(
        {"cluster": jobs, "task": {"type": kind, "index": index}}
    )


def _broken(reason, received):
    shown = received if isinstance(received, str) else json.dumps(received)
    return UsageError(
        f"TF_CONFIG is broken: {reason}. Received: {shown[:300]}. It must "
        f"look like {EXAMPLE}"
    )
