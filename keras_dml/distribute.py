"""Devices and replicas: the only code that knows of `tf.distribute`.

On other backends than TensorFlow everything here is the identity.
"""

import contextlib
import functools
from typing import Any

import keras

from keras_dml.errors import UsageError

STRATEGIES = ("auto", "none", "mirrored", "multi_worker")


class SingleDevice:
    """The strategy of one device: a scope that does nothing."""

    num_replicas_in_sync = 1

    def scope(self) -> contextlib.AbstractContextManager:
        """A context in which variables are made as always."""
        return contextlib.nullcontext()


def all_gather(x):
    """Concatenates `x` over the replicas; `x` itself outside a strategy.

    Differentiable: the gradient is summed over the replicas, and each gets
    the part of its own rows.

    Args:
        x: Tensor `(rows, ...)`, of the same shape on every replica.

    Returns:
        Tensor `(replicas * rows, ...)`, the rows of replica 0 first.
    """
    context = _replica_context()
    if num_replicas() == 1:
        return x
    import tensorflow as tf

    if context is None:
        # Keras builds a model outside of the replicas, for its shapes alone.
        return tf.concat([x] * num_replicas(), axis=0)

    # `all_gather` forgets the static shape.
    return tf.ensure_shape(context.all_gather(x, axis=0), [None, *x.shape[1:]])


def replica_index():
    """Index of the current replica; 0 outside a strategy."""
    context = _replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def local_variable(variable):
    """The TensorFlow variable inside a Keras one, as this replica has it.

    Changing it in place changes this replica's copy alone.

    Args:
        variable: Keras variable, with `aggregation="none"`.

    Returns:
        A `tf.Variable`; `None` where there is none to change: on other
        backends, outside the replicas of a strategy, and while Keras traces
        shapes.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    value = variable.value
    if isinstance(value, tf.distribute.DistributedValues):
        context = _replica_context()
        if context is None:
            return None
        index = tf.get_static_value(context.replica_id_in_sync_group)
        return value.values[int(index)]
    return value if isinstance(value, tf.Variable) else None


def num_replicas() -> int:
    """Number of replicas of the current strategy; 1 outside of one."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def set_logical_devices(devices: str) -> None:
    """Splits the processor into logical devices, one for each replica.

    Args:
        devices: Kind and number, such as `"cpu:2"`. For `"gpu:N"` nothing is
            split; there must be that many.

    Raises:
        UsageError: If the text cannot be read, or there are not that many.
        RuntimeError: If TensorFlow has already started with fewer.

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
        raise RuntimeError(
            "`set_logical_devices` must be called before TensorFlow runs its "
            f"first operation; it runs on {len(current)} already. "
            f"Received: devices={devices!r}"
        ) from error


def get_strategy(
    name: str = "auto", devices: str | None = None, policy: str | None = None
) -> Any:
    """The strategy of a training, whose `scope()` all of it is built in.

    `mixed_float16` is refused on several replicas, where an overflow on one of
    them can destroy the weights; `mixed_bfloat16` is safe. Equal arguments
    give the same object, because two strategies of one process disturb each
    other's collectives.

    Args:
        name: `"none"` for one device, `"mirrored"` for copies of the model on
            several, or `"auto"`: mirrored where there are several devices.
            Defaults to `"auto"`.
        devices: Kind and number, such as `"gpu:4"`, or `"cpu:2"` before
            TensorFlow runs anything, see `set_logical_devices`. Defaults to
            `None`, all GPUs.
        policy: Name of the dtype policy that any part of the model will
            have. Defaults to `None`, the current one of Keras.

    Returns:
        Object with `scope()` and `num_replicas_in_sync`.

    Raises:
        UsageError: If the name is unknown or not available, the devices do
            not exist, or several replicas would train in `mixed_float16`.

    Example:

    ```python
    with get_strategy("auto").scope():
        model = build_model()
        model.compile(optimizer, loss)
    ```
    """
    if name == "multi_worker":
        raise UsageError(
            "The strategy 'multi_worker' is not available yet. Use 'mirrored' "
            "for several devices of one machine. Received: name='multi_worker'"
        )
    if name not in STRATEGIES:
        raise UsageError(
            "`name` of a strategy must be 'auto', 'none' or 'mirrored'. "
            f"Received: name={name!r}"
        )
    if name == "none":
        return SingleDevice()
    if name == "auto" and keras.backend.backend() != "tensorflow":
        return SingleDevice()
    _require_tensorflow(f"name={name!r}")
    found = _logical_devices(devices)
    if len(found) < 2:
        return SingleDevice()
    policy = policy or keras.config.dtype_policy().name
    if policy == "mixed_float16":
        raise UsageError(
            "`mixed_float16` is not safe on several replicas: when one of "
            "them overflows, the weights can be destroyed. Use "
            f"`mixed_bfloat16` or one device. Received: policy {policy!r}, "
            f"{len(found)} devices"
        )
    return _mirrored(tuple(found))


def _replica_context():
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def _require_tensorflow(received):
    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            "Several devices need the TensorFlow backend of Keras. "
            f"Received: {received}, backend {keras.backend.backend()!r}"
        )


def _parse_devices(devices):
    kind, _, count = devices.partition(":")
    if kind.lower() not in ("cpu", "gpu") or not count.isdecimal():
        raise UsageError(
            "`devices` must be a kind and a number, such as 'cpu:2' or "
            f"'gpu:4'. Received: devices={devices!r}"
        )
    if int(count) < 1:
        raise UsageError(
            f"`devices` must ask for at least one. Received: {devices!r}"
        )
    return kind.upper(), int(count)


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
