"""Small embedders to export."""

import os
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.export import export_saved_model
from keras_dml.models import build_embedder


@pytest.fixture
def make_embedder():
    """Function of `build_embedder` arguments that makes a small embedder."""

    def make(size=16, channels=3, normalize=True, **changes):
        keras.utils.set_random_seed(0)
        changes = {"backbone": "small_cnn", "dim": 8, **changes}
        return build_embedder(
            image_shape=(size, size, channels), normalize=normalize, **changes
        )

    return make


@pytest.fixture(scope="session")
def indexed_folder(tmp_path_factory):
    """A SavedModel with an index of 20 references, only to be read."""
    keras.utils.set_random_seed(0)
    rows = np.random.default_rng(0).normal(size=(20, 8))
    ids = np.array([f"shoe {row}" for row in range(20)])
    return export_saved_model(
        build_embedder("small_cnn", (16, 16, 3), dim=8),
        tmp_path_factory.mktemp("export") / "saved_model",
        with_index=True,
        gallery=EmbeddingSet(rows, ids, ids),
    )


@pytest.fixture
def run_bare(tmp_path):
    """Function that runs code in a process where some modules are absent."""

    def run(code, *arguments, absent):
        blocked = "import sys\n" + "".join(
            f"sys.modules[{module!r}] = None\n" for module in absent
        )
        script = tmp_path / "bare.py"
        script.write_text(blocked + textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, script, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run
