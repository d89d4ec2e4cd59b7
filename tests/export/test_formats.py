"""Artifacts refuse what they would answer with nonsense."""

import sys

import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.export import export_litert, open_artifact
from tests.conformance import to_numpy
from tests.export.test_litert import IMAGES


@pytest.mark.slow
@pytest.mark.parametrize("dynamic_batch", [False, True])
@pytest.mark.parametrize("runtime", ["LiteRT", "TensorFlow"])
def test_litert(runtime, dynamic_batch, make_embedder, tmp_path, monkeypatch):
    if runtime == "TensorFlow":
        monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    embedder = make_embedder()
    folder = export_litert(
        embedder, tmp_path / "litert", dynamic_batch=dynamic_batch
    )
    runner = open_artifact(folder, threads=1)
    pixels = runner.prepare(IMAGES + np.float32(0.3))
    np.testing.assert_array_equal(pixels, IMAGES)
    np.testing.assert_allclose(
        runner.embed(pixels), to_numpy(embedder(IMAGES)), atol=1e-4
    )
    for wrong in (IMAGES[0], IMAGES[:, :8], IMAGES.astype("float32")):
        with pytest.raises(UsageError, match=r"uint8 images of shape \(n, 16"):
            runner.embed(wrong)
    with pytest.raises(UsageError, match="at least one image"):
        runner.embed(IMAGES[:0])


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not an export of keras-dml"):
        open_artifact(tmp_path)
