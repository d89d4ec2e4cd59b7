"""The SavedModel answers as the embedder does, in a bare process too."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.errors import UsageError
from keras_dml.export import export_saved_model
from tests.conformance import to_numpy
from tests.export.images import BROKEN, FILES
from tests.export.kinds import MODELS

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3))
IMAGES = IMAGES.astype("uint8")

BARE = """
    import numpy as np
    import tensorflow as tf

    served = tf.saved_model.load(sys.argv[1])
    files = np.load(sys.argv[2], allow_pickle=True)["files"]
    result = served.serve_image_bytes(tf.constant(list(files)))
    answer = {key: value.numpy() for key, value in result.items()}
    np.savez(sys.argv[3], **answer)
    loaded = [name for name in ("keras", "keras_dml") if sys.modules[name]]
    assert not loaded, loaded
"""


@pytest.mark.parametrize("name", MODELS)
def test_answers_as_the_embedder(name, make_embedder, tmp_path):
    embedder = make_embedder(**MODELS[name])
    images = IMAGES[..., : embedder.input_shape[-1]]
    folder = export_saved_model(embedder, tmp_path / "saved_model")
    served = tf.saved_model.load(str(folder))
    expected = to_numpy(embedder(images))
    for answer in (
        served.serve(images.astype("float32")),
        served.serve_uint8(images),
        served.signatures["serving_default"](tf.constant(images, tf.float32)),
    ):
        assert answer["embedding"].dtype == tf.float32
        np.testing.assert_allclose(
            answer["embedding"].numpy(), expected, atol=1e-5
        )


def embed_files(embedder, paths, **arguments):
    """As the evaluation does."""
    manifest = Manifest(
        name="files",
        labels=np.zeros(len(paths), "int64"),
        class_names=("one",),
        ids=np.array([str(path) for path in paths]),
        paths=np.array([str(path) for path in paths]),
    )
    size, _, channels = embedder.input_shape[1:]
    batches = evaluation_batches(
        manifest,
        batch_size=4,
        image_size=size,
        channels=channels,
        **arguments,
    )
    return np.concatenate(
        [to_numpy(embedder(inputs["image"])) for inputs, _ in batches]
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"resize": 20}, {"resize": 24, "squash": True}]
)
def test_files_are_treated_as_in_the_evaluation(
    arguments, make_embedder, tmp_path
):
    embedder = make_embedder()
    folder = export_saved_model(embedder, tmp_path / "m", **arguments)
    paths = [tmp_path / f"{name}.bin" for name in FILES]
    for path, contents in zip(paths, FILES.values(), strict=True):
        path.write_bytes(contents)
    served = tf.saved_model.load(str(folder))
    answer = served.serve_image_bytes(tf.constant(list(FILES.values())))
    np.testing.assert_allclose(
        answer["embedding"].numpy(),
        embed_files(embedder, paths, **arguments),
        atol=1e-5,
    )


def test_bare_process(make_embedder, run_bare, tmp_path):
    embedder = make_embedder(pooling="k_max", k=2)
    folder = export_saved_model(embedder, tmp_path / "saved_model")
    files = [*FILES.values(), *BROKEN.values()]
    np.savez(tmp_path / "files.npz", files=np.array(files, dtype=object))
    run_bare(
        BARE,
        folder,
        tmp_path / "files.npz",
        tmp_path / "answer.npz",
        absent=("keras", "keras_dml"),
    )
    answer = np.load(tmp_path / "answer.npz")
    served = tf.saved_model.load(str(folder))
    here = served.serve_image_bytes(tf.constant(files))
    np.testing.assert_array_equal(answer["ok"], here["ok"])
    np.testing.assert_allclose(
        answer["embedding"], here["embedding"], atol=1e-5
    )


@pytest.mark.data
def test_real_files_in_a_bare_process(
    make_embedder, run_bare, test_data, tmp_path
):
    embedder = make_embedder(size=32)
    folder = export_saved_model(embedder, tmp_path / "saved_model", resize=36)
    paths = sorted((test_data / "grocery81_96").rglob("*.jpg"))[::500]
    files = np.array([path.read_bytes() for path in paths], dtype=object)
    np.savez(tmp_path / "files.npz", files=files)
    run_bare(
        BARE,
        folder,
        tmp_path / "files.npz",
        tmp_path / "answer.npz",
        absent=("keras", "keras_dml"),
    )
    answer = np.load(tmp_path / "answer.npz")
    assert answer["ok"].all()
    np.testing.assert_allclose(
        answer["embedding"],
        embed_files(embedder, paths, resize=36),
        atol=1e-5,
    )


def test_manifest(make_embedder, tmp_path):
    folder = export_saved_model(
        make_embedder(),
        tmp_path / "saved_model",
        resize=20,
        metadata={"recipe": "proxynca_pp", "labels": ["a", "b"]},
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["made_by"] == "keras-dml"
    assert manifest["format"] == "saved_model"
    assert manifest["endpoints"] == [
        "serve",
        "serve_uint8",
        "serve_image_bytes",
    ]
    assert manifest["recipe"] == "proxynca_pp"
    assert manifest["labels"] == ["a", "b"]
    assert manifest["embedding"] == {"dim": 8, "unit_length": True}
    assert manifest["image"]["height"] == 16
    assert manifest["image"]["resize"] == 20


@pytest.mark.parametrize(
    "images", [np.zeros((2, 8, 8, 3)), np.zeros((16, 16, 3))]
)
def test_other_shapes_are_refused(images, make_embedder, tmp_path):
    folder = export_saved_model(make_embedder(), tmp_path / "saved_model")
    served = tf.saved_model.load(str(folder))
    with pytest.raises((TypeError, ValueError)):
        served.serve(tf.constant(images, tf.float32))


def test_foreign_folder_is_refused(make_embedder, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(UsageError, match="is not an export of keras-dml"):
        export_saved_model(make_embedder(), tmp_path)
    assert (tmp_path / "photo.jpg").read_bytes() == b"precious"
