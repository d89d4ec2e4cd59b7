"""Exports of a network of keras-hub need neither keras-hub nor Keras."""

import numpy as np
import pytest

from keras_dml.export import export_litert, export_saved_model
from keras_dml.models import build_embedder
from tests.conformance import to_numpy
from tests.export.clients import run_litert
from tests.models import hub_presets
from tests.models.hub_presets import SIDE

pytest.importorskip(
    "keras_hub", reason="keras-hub is not installed: `pip install .[hub]`."
)

IMAGES = np.random.default_rng(0).integers(0, 256, (3, SIDE, SIDE, 3))
IMAGES = IMAGES.astype("uint8")

BARE = """
    import numpy as np
    import tensorflow as tf

    served = tf.saved_model.load(sys.argv[1])
    images = np.load(sys.argv[2]).astype("float32")
    answer = served.serve(tf.constant(images))
    np.save(sys.argv[3], answer["embedding"])
"""


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    """Around a small ViT, in half precision, pooled over its patches."""
    name = hub_presets.save("vit", tmp_path_factory.mktemp("presets"))
    return build_embedder(
        name,
        (SIDE, SIDE, 3),
        dim=5,
        pooling="k_max",
        k=2,
        policy="mixed_bfloat16",
    )


@pytest.mark.slow
def test_saved_model_in_a_bare_process(embedder, run_bare, tmp_path):
    folder = export_saved_model(embedder, tmp_path / "saved_model")
    np.save(tmp_path / "images.npy", IMAGES)
    run_bare(
        BARE,
        folder,
        tmp_path / "images.npy",
        tmp_path / "answer.npy",
        absent=("keras", "keras_dml", "keras_hub", "tensorflow_text"),
    )
    np.testing.assert_allclose(
        np.load(tmp_path / "answer.npy"), to_numpy(embedder(IMAGES)), atol=0.05
    )


@pytest.mark.slow
def test_litert(embedder, tmp_path):
    """Of built-in ops alone: the conversion refuses any other."""
    folder = export_litert(embedder, tmp_path / "litert")
    np.testing.assert_allclose(
        run_litert(folder, IMAGES), to_numpy(embedder(IMAGES)), atol=0.05
    )
