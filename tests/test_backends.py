"""Layers, losses and optimizers without TensorFlow, in processes of their own.

A process has one Keras backend, so each test starts one.
"""

import importlib.util
import inspect
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_dml import layers, losses, regularizers
from tests import backend_numbers
from tests.conftest import ROOT

# `sys.modules[name] = None` makes every import of it an ImportError.
BLOCK = "import sys; sys.modules['tensorflow'] = None; "

RUN_NUMBERS = BLOCK + (
    "import runpy; runpy.run_module('tests.backend_numbers', "
    "run_name='__main__')"
)

MODULES = (
    "ops",
    "initializers",
    "regularizers",
    "layers",
    "losses",
    "metrics",
    "miners",
    "optimizers",
    "callbacks",
    "distribute",
    "evaluation",
    "embeddings",
    "data.sampling",
)

# Where TensorFlow is the only backend, Keras itself needs it; then every
# import of it that comes from keras_dml fails instead.
BLOCK_OURS = """
import builtins, keras
original = builtins.__import__

def guarded(name, globals=None, *arguments):
    importer = (globals or {}).get("__name__") or ""
    if name.split(".")[0] == "tensorflow" and importer.startswith("keras_dml"):
        raise ImportError(f"{importer} imports {name}")
    return original(name, globals, *arguments)

builtins.__import__ = guarded
"""


def installed(backend):
    return importlib.util.find_spec(backend) is not None


def run(code, backend):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        # JAX compiles what is run once: the less it optimizes the better.
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tensorflow_numbers():
    return {
        "computed": backend_numbers.computed(),
        "trained": backend_numbers.trained(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_numbers_are_those_of_tensorflow(backend, tensorflow_numbers):
    if not installed(backend):
        pytest.skip(f"The backend {backend} is not installed.")
    done = run(RUN_NUMBERS, backend)
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout)
    for part, expected in tensorflow_numbers.items():
        assert actual[part].keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(
                actual[part][name], value, 1e-4, 1e-5, err_msg=name
            )


def test_every_layer_and_loss_is_among_the_numbers():
    public = {
        value
        for package in (layers, losses, regularizers)
        for value in vars(package).values()
        if inspect.isclass(value)
        and issubclass(
            value,
            (
                keras.layers.Layer,
                keras.losses.Loss,
                keras.regularizers.Regularizer,
            ),
        )
        and not inspect.isabstract(value)
        and value is not losses.Loss
    }
    assert backend_numbers.covered() == public


@pytest.mark.slow
def test_no_number_is_trivial(tensorflow_numbers):
    """What is zero on one backend is zero on all of them."""
    zero = {
        name
        for name, value in tensorflow_numbers["computed"].items()
        if not np.any(value)
    }
    assert zero == {"zero rows"}


@pytest.mark.slow
def test_nothing_but_keras_imports_tensorflow():
    backend = next(
        (name for name in ("jax", "torch") if installed(name)), "tensorflow"
    )
    block = BLOCK_OURS if backend == "tensorflow" else BLOCK
    imports = "; ".join(f"import keras_dml.{module}" for module in MODULES)
    done = run(f"{block}\n{imports}\nprint('done')", backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


@pytest.mark.slow
def test_the_block_blocks():
    """The test above can fail: a module that imports TensorFlow is caught."""
    code = BLOCK_OURS + (
        "from keras_dml import distribute\ndistribute.num_replicas()"
    )
    done = run(code, "tensorflow")
    assert "keras_dml.distribute.replicas imports tensorflow" in done.stderr
