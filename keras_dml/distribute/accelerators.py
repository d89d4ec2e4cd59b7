"""Which accelerators the backend of Keras computes on, and who may use them."""

import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass

import keras

from keras_dml.errors import UsageError


def _of_tensorflow() -> list[str]:
    import tensorflow as tf

    # Named as they are on the machine, used or not.
    physical = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, physical)
    used = len(tf.config.list_logical_devices("GPU"))
    return [one.get("device_name", "") for one in details][:used]


def _of_jax() -> list[str]:
    import jax

    return [one.device_kind for one in jax.devices() if one.platform != "cpu"]


def _of_torch() -> list[str]:
    import torch

    count = torch.cuda.device_count()
    return [torch.cuda.get_device_name(place) for place in range(count)]


@dataclass(frozen=True)
class Backend:
    """A backend of Keras that trains.

    Attributes:
        title: Its name in sentences.
        for_gpus: The pip package that brings NVIDIA's libraries.
        accelerators: Function that returns the names of the accelerators.
    """

    title: str
    for_gpus: str
    accelerators: Callable[[], list[str]]


BACKENDS = {
    "tensorflow": Backend("TensorFlow", "tensorflow[and-cuda]", _of_tensorflow),
    "jax": Backend("JAX", "jax[cuda12]", _of_jax),
    "torch": Backend("PyTorch", "torch", _of_torch),
}


def get_backend() -> Backend:
    """Returns the backend of this process.

    Raises:
        UsageError: If it does not train.

    Example:

    >>> get_backend().title
    'TensorFlow'
    """
    name = keras.backend.backend()
    if name not in BACKENDS:
        raise UsageError(
            "The backend of Keras must be one that trains: "
            f"{', '.join(BACKENDS)}. Received: {name!r}. Set the environment "
            "variable KERAS_BACKEND."
        )
    return BACKENDS[name]


def backend_version() -> str:
    """Returns the backend and its version, such as `"jax 0.10.2"`."""
    name = keras.backend.backend()
    return f"{name} {importlib.import_module(name).__version__}"


def leave_accelerators() -> None:
    """Leaves the accelerators to the backend, if that is not TensorFlow.

    TensorFlow then only reads images, and would take the memory of all GPUs.
    """
    if keras.backend.backend() == "tensorflow":
        return
    import tensorflow as tf

    # A program that has used TensorFlow before has decided for itself.
    with contextlib.suppress(RuntimeError):
        tf.config.set_visible_devices([], "GPU")
