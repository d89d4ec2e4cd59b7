"""Whole runs on JAX and PyTorch, in processes of their own.

A process has one backend of Keras.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.run import on_backend
from tests.run.made_up import pretrained_photos
from tests.thorough import ALL

BACKENDS = ["jax", "torch"]
EACH = pytest.mark.parametrize("backend", BACKENDS)


def python(backend, *arguments):
    """Runs Python with a backend; two threads of PyTorch wait for each other
    on a busy machine."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"The backend {backend} is not installed.")
    return subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        env={**os.environ, "KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return pretrained_photos(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def on_tensorflow(photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorflow") / "run"
    run = on_backend.train(photos, folder, export=False, report=False)
    return on_backend.results(run)


EVALUATES = """
import keras, numpy, tensorflow
from keras_dml.callbacks import RetrievalEvaluation

image = keras.Input((3,))
model = keras.Model(image, keras.layers.Dense(4)(image))
model.compile("sgd", "sparse_categorical_crossentropy")
rows, labels = numpy.eye(3, dtype="f").repeat(2, 0), numpy.arange(6) // 2
data = tensorflow.data.Dataset.from_tensor_slices((rows, labels)).batch(3)
found = model.fit(data, verbose=0, callbacks=[RetrievalEvaluation(model, data)])
print(found.history["val_recall@1"])
"""


@EACH
@pytest.mark.slow
def test_the_evaluation_reads_a_data_set_of_tensorflow(backend):
    """JAX takes no tensor of it; `fit` takes the data set all the same."""
    done = python(backend, "-c", EVALUATES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.0]"


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS if ALL else BACKENDS[:1])
def test_a_run_from_fit_to_export(backend, photos, on_tensorflow, tmp_path):
    done = python(backend, "-m", "tests.run.on_backend", photos, tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["backend"].startswith(f"{backend} ")
    assert {
        *("config.yaml", "metrics.json", "history.csv", "log.txt"),
        *("embedder.keras", "checkpoints", "export", "report.html"),
    } <= set(found["files"])
    # The same seed starts from the same weights, and sees the same batches.
    expected = on_tensorflow["history"]
    assert found["history"].keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(
            found["history"][name], values, 2e-3, 1e-4, err_msg=name
        )
    assert found["metrics"] == on_tensorflow["metrics"]
    assert found["metrics"]["interpolation"]["kept"]
    assert found["stopped"].endswith("from epoch 2, step 2/4.")
    assert found["difference"] == 0.0
    assert found["evaluated"] == found["metrics"]["after"]["map@r"]
    # The pretrained network was kept: its features are the embedding.
    assert found["rows"] == [192, 128]
    assert found["found"].startswith("SearchResult of 1 image")
    assert found["exports"] == ["embedder", "saved_model"]
    assert min(found["cosines"]) > 0.9999


@pytest.mark.slow
@EACH
@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--devices", "cpu:2"], "Received: devices='cpu:2'"),
        (["--strategy", "mirrored"], "'mirrored'"),
    ],
)
def test_several_devices_are_refused_before_reading(
    backend, options, what, tmp_path
):
    output = tmp_path / "run"
    done = python(
        *(backend, "-m", "keras_dml", "fit", "nowhere", "--output", output),
        *options,
    )
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "Several devices need the TensorFlow backend of Keras." in said
    assert what in said and "Set KERAS_BACKEND=tensorflow" in said
    assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "advice"),
    [
        ("numpy", "tensorflow, jax, torch. Received: 'numpy'"),
        ("paper", "pip install jax or torch"),
    ],
)
def test_a_backend_that_cannot_train_is_refused(backend, advice, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "keras_dml", "fit", "digits"],
        env={**os.environ, "KERAS_BACKEND": backend},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    assert said.count("Error: ") == 1 and advice in said
    assert "Traceback" not in said and not any(tmp_path.iterdir())
