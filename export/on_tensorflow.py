"""Runs an export where Keras runs on TensorFlow: in a process of its own.

A backend is chosen once per process, and only TensorFlow writes SavedModels,
from which the other formats are made.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import keras

from keras_dml.console import showing_log
from keras_dml.errors import RunError, UsageError

Result = TypeVar("Result")

_PROGRAM = "from keras_dml.export import on_tensorflow as it; it.answer()"


def is_here() -> bool:
    """Returns whether Keras runs on TensorFlow in this process."""
    return keras.backend.backend() == "tensorflow"


def call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function in a process whose Keras runs on TensorFlow.

    Args:
        function: Function of a module.
        *arguments: What it takes; both must be picklable.

    Raises:
        UsageError: If the function raises it, or an argument cannot be passed
            on.
        RunError: If the function raises it, or the process fails.
    """
    try:
        question = pickle.dumps((function, arguments))
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise UsageError(
            "An export outside of TensorFlow needs options that another "
            "process can be given: numbers, texts, lists and arrays. "
            f"Received: {error}. Set KERAS_BACKEND=tensorflow to export here."
        ) from error
    environment = {
        "PYTHONWARNINGS": "ignore",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # This process may hold most of the memory of the GPU.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer"
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, file],
            input=question,
            env=environment,
            # Ctrl-C asks this process, which ends the other.
            start_new_session=True,
        )
        if done.returncode:
            raise RunError(
                "The export failed in the process that runs TensorFlow, with "
                f"exit code {done.returncode}; its output says why. With "
                "KERAS_BACKEND=tensorflow, `keras-dml export` runs without "
                "another process."
            )
        result, raised = pickle.loads(file.read_bytes())
    if raised is not None:
        raise raised
    return result


def answer() -> None:
    """Runs the call on standard input; writes its result, or its error."""
    function, arguments = pickle.load(sys.stdin.buffer)
    result = error = None
    with showing_log():
        try:
            result = function(*arguments)
        except (UsageError, RunError) as raised:
            error = raised
    Path(sys.argv[1]).write_bytes(pickle.dumps((result, error)))
