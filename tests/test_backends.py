"""Layers, losses and optimizers without TensorFlow, in processes of their own.

A process has one Keras backend, so each test starts one.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests import backend_numbers
from tests.conftest import ROOT

# `sys.modules[name] = None` makes every import of it an ImportError.
BLOCK = "import sys; sys.modules['tensorflow'] = None; "

RUN_NUMBERS = BLOCK + (
    "import runpy; runpy.run_module('tests.backend_numbers', "
    "run_name='__main__')"
)

MODULES = (
    "layers",
    "losses",
    "optimizers",
    "callbacks",
    "distribute",
    "freezing",
    "evaluation.metrics",
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
        env={**os.environ, "KERAS_BACKEND": backend},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_numbers_are_those_of_tensorflow(backend):
    if not installed(backend):
        pytest.skip(f"The backend {backend} is not installed.")
    done = run(RUN_NUMBERS, backend)
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout)
    for part in ("numbers", "trained"):
        expected = getattr(backend_numbers, part)()
        assert actual[part].keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(
                actual[part][name], value, 1e-4, 1e-5, err_msg=name
            )


def test_nothing_but_keras_imports_tensorflow():
    backend = next(
        (name for name in ("jax", "torch") if installed(name)), "tensorflow"
    )
    block = BLOCK_OURS if backend == "tensorflow" else BLOCK
    imports = "; ".join(f"import keras_dml.{module}" for module in MODULES)
    done = run(f"{block}\n{imports}\nprint('done')", backend)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


def test_the_block_blocks():
    """The test above can fail: a module that imports TensorFlow is caught."""
    code = BLOCK_OURS + (
        "from keras_dml import distribute\ndistribute.num_replicas()"
    )
    done = run(code, "tensorflow")
    assert "keras_dml.distribute imports tensorflow" in done.stderr
