"""Makes strategies of `tf.distribute` by name."""

import contextlib
import functools
import re
from typing import Any

import keras

from keras_dml.checks import one_of
from keras_dml.distribute import workers
from keras_dml.distribute.cluster import (
    NO_PARAMETER_SERVERS,
    Cluster,
    read_cluster,
)
from keras_dml.errors import UsageError
from keras_dml.naming import shown

STRATEGIES = ("auto", "none", "mirrored", "multi_worker")
PEER_TIMEOUT = 120.0


class SingleDevice:
    """Replaces a strategy on one device; its scope does nothing."""

    num_replicas_in_sync = 1

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns a context that does nothing."""
        return contextlib.nullcontext()


def set_logical_devices(devices: str) -> None:
    """Splits the processor into logical devices, one for each replica.

    Args:
        devices: Kind and number, such as `"cpu:2"`. `"gpu:N"` splits nothing
            and requires N GPUs.

    Raises:
        UsageError: If the text cannot be read, or there are too few devices.
        UsageError: If TensorFlow has already started with fewer.

    Example:

    ```python
    set_logical_devices("cpu:2")
    ```
    """
    kind, count = _parse_devices(devices)
    _require_tensorflow(f"devices={devices!r}")
    import tensorflow as tf

    physical = tf.config.list_physical_devices(kind)
    if kind != "CPU":
        if len(physical) < count:
            raise UsageError(
                f"`devices` asks for {count} of {kind} and this machine has "
                f"{len(physical)}. Received: devices={devices!r}"
            )
        return
    current = tf.config.get_logical_device_configuration(physical[0]) or [None]
    if len(current) >= count:
        return
    try:
        tf.config.set_logical_device_configuration(
            physical[0], [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError as error:
        raise UsageError(
            "`devices` must be given before TensorFlow runs its first "
            f"operation; it runs on {len(current)} already. Received: "
            f"devices={devices!r}. Restart the program, or the kernel of the "
            "notebook, and give it first."
        ) from error


def get_strategy(
    name: str = "auto",
    devices: str | None = None,
    policy: str | None = None,
    peer_timeout: float = PEER_TIMEOUT,
) -> Any:
    """Returns a strategy; build and compile the model in its `scope()`.

    It raises an error for `mixed_float16` on several replicas, where an
    overflow on one of them can destroy the weights; `mixed_bfloat16` is safe.
    Equal arguments return the same object, because two strategies of one
    process disturb each other's collectives.

    With several workers, each must call this function before TensorFlow runs
    its first operation. It returns when all workers have called it.

    Args:
        name: `"none"` for one device, `"mirrored"` for copies of the model on
            several devices of this machine, `"multi_worker"` for the machines
            that `TF_CONFIG` or Slurm names, or `"auto"`: multi_worker if
            `TF_CONFIG` names several machines, else mirrored if there are
            several devices. Defaults to `"auto"`.
        devices: Kind and number, such as `"gpu:4"`; or `"cpu:2"` before
            TensorFlow runs its first operation, see `set_logical_devices`.
            Defaults to `None`: all GPUs.
        policy: Name of the dtype policy that any part of the model will
            have. Defaults to `None`: the current policy of Keras.
        peer_timeout: Seconds after which a worker that does not answer, or a
            step that does not end, ends the run. Defaults to `120.0`.

    Returns:
        Object with `scope()` and `num_replicas_in_sync`.

    Raises:
        UsageError: If the name is unknown or not available, the devices do
            not exist, `TF_CONFIG` is broken, or several replicas would train
            in `mixed_float16`.

    Example:

    ```python
    with get_strategy("auto").scope():
        model = build_model()
        model.compile(optimizer, loss)
    ```
    """
    if name in ("parameter_server", "ps"):
        raise UsageError(
            f"{NO_PARAMETER_SERVERS} Received: name={name!r}. Use "
            "'multi_worker'."
        )
    one_of("name", name, STRATEGIES)
    elsewhere = keras.backend.backend() != "tensorflow"
    if elsewhere and devices is not None:
        _require_tensorflow(f"devices={devices!r}")
    if name == "none" and devices is not None:
        raise UsageError(
            "`devices` must be left out with the strategy 'none', which trains "
            f"on one device. Received: devices={devices!r}. For several, "
            "choose 'mirrored'."
        )
    if name == "none" or (name == "auto" and elsewhere):
        return SingleDevice()
    _require_tensorflow(f"name={name!r}")
    policy = policy or keras.config.dtype_policy().name
    cluster = _cluster(name)
    if cluster is not None:
        received = f"{len(cluster.addresses)} workers"
        if devices is not None:
            raise UsageError(
                "A worker trains on all of its GPUs, or on its processor. "
                f"Received: devices={devices!r} and {received}. Leave "
                "`devices` out; CUDA_VISIBLE_DEVICES hides GPUs."
            )
        _check_policy(policy, received)
        return workers.start(cluster, peer_timeout)
    found = _logical_devices(devices)
    if len(found) < 2:
        _require_default(found, devices)
        return SingleDevice()
    _check_policy(policy, f"{len(found)} devices")
    return _mirrored(tuple(found))


def _require_default(found: list[Any], devices: str | None) -> None:
    """Raises unless the one device is the one that TensorFlow takes itself."""
    import tensorflow as tf

    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    if devices is not None and gpus and gpus[0] not in found:
        raise UsageError(
            "`devices` names one processor, and this machine has a GPU, on "
            f"which TensorFlow trains. Received: devices={devices!r}. Leave it "
            "out, and set CUDA_VISIBLE_DEVICES=-1, which hides the GPUs."
        )


def _cluster(name: str) -> Cluster | None:
    """Returns the cluster to train on; `None` for this machine alone."""
    if name not in ("auto", "multi_worker"):
        return None
    cluster = read_cluster(slurm=name == "multi_worker")
    if cluster is None and name == "multi_worker":
        raise UsageError(
            "The strategy 'multi_worker' needs to know the workers. Set "
            "TF_CONFIG for each of them, or start them with Slurm's `srun`. "
            "Received: neither TF_CONFIG nor a Slurm step"
        )
    if cluster is None or len(cluster.addresses) < 2:
        return None
    return cluster


def _check_policy(policy, received):
    if policy == "mixed_float16":
        raise UsageError(
            "`mixed_float16` is not safe on several replicas: when one of "
            "them overflows, the weights can be destroyed. Use "
            f"`mixed_bfloat16` or one device. Received: policy {policy!r}, "
            f"{received}"
        )


def _require_tensorflow(received):
    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            "Several devices need the TensorFlow backend of Keras. "
            f"Received: {received}, backend {keras.backend.backend()!r}. Set "
            "KERAS_BACKEND=tensorflow, or leave `strategy` and `devices` out "
            "to train on one."
        )


def _parse_devices(devices):
    match = re.fullmatch(r"(cpu|gpu):0*([1-9]\d?)", devices.lower())
    if match is None:
        raise UsageError(
            "`devices` must be a kind and a number from 1 to 99, such as "
            f"'cpu:2' or 'gpu:4'. Received: devices={shown(devices)}"
        )
    return match[1].upper(), int(match[2])


def _logical_devices(devices):
    import tensorflow as tf

    if devices is None:
        return [d.name for d in tf.config.list_logical_devices("GPU")]
    set_logical_devices(devices)
    kind, count = _parse_devices(devices)
    return [d.name for d in tf.config.list_logical_devices(kind)][:count]


@functools.cache
def _mirrored(devices):
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(list(devices))
