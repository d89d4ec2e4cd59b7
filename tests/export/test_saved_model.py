"""The SavedModel answers as the embedder does, in a bare process too."""

import ast
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex
from keras_dml.export import export_saved_model
from keras_dml.export.saved_model import write_labels
from tests.conformance import to_numpy
from tests.export.images import BROKEN, FILES
from tests.export.kinds import MODELS
from tests.images import ORIENTATIONS, turned_file

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_turned_photos_have_the_embedding_of_the_upright_one(
    kind, make_embedder, tmp_path
):
    embedder = make_embedder()
    folder = export_saved_model(embedder, tmp_path / "m", resize=19)
    served = tf.saved_model.load(str(folder))
    files = [turned_file(turn, kind) for turn in ORIENTATIONS]
    # The same pixels on their side: this embedder tells them apart.
    files.append(turned_file(6, kind, exif=b""))
    answer = served.serve_image_bytes(tf.constant(files))
    *turned, untagged = answer["embedding"].numpy()
    assert answer["ok"].numpy().all()
    np.testing.assert_allclose(turned, turned[:1] * 8, atol=5e-3)
    assert np.abs(untagged - turned[0]).max() > 0.05


@pytest.mark.slow
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


@pytest.mark.slow
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
        "similarity",
    ]
    assert manifest["recipe"] == "proxynca_pp"
    assert manifest["labels"] == ["a", "b"]
    assert manifest["embedding"] == {"dim": 8, "unit_length": True}
    assert manifest["image"]["height"] == 16
    assert manifest["image"]["resize"] == 20


@pytest.fixture(scope="module")
def served(indexed_folder):
    return tf.saved_model.load(str(indexed_folder))


GOOD = {
    "image": np.zeros((2, 16, 16, 3), "float32"),
    "first": np.zeros((2, 16, 16, 3), "float32"),
    "second": np.zeros((2, 16, 16, 3), "float32"),
    "image_bytes": np.array([FILES["jpeg"]]),
    "embedding": np.zeros((2, 8), "float32"),
    "k": np.array([1], "int32"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("endpoint", "name", "value"),
    [
        ("serve", "image", np.zeros((2, 8, 8, 3), "float32")),
        ("serve", "image", np.zeros((16, 16, 3), "float32")),
        ("serve", "image", np.zeros((2, 16, 16, 3), "uint8")),
        ("serve_uint8", "image", np.zeros((2, 16, 16, 3), "float32")),
        ("serve_uint8", "image", np.zeros((2, 16, 16, 1), "uint8")),
        ("serve_image_bytes", "image_bytes", np.array(FILES["jpeg"])),
        ("serve_image_bytes", "image_bytes", np.zeros((2,), "float32")),
        ("similarity", "second", np.zeros((2, 8, 8, 3), "float32")),
        ("similarity", "first", np.zeros((2, 16, 16, 3), "uint8")),
        ("neighbors", "image_bytes", np.array([[FILES["jpeg"]]])),
        ("neighbors", "k", np.array([1.5], "float32")),
        ("neighbors_of_embedding", "embedding", np.zeros((2, 9), "float32")),
        ("neighbors_of_embedding", "embedding", np.zeros((8,), "float32")),
        ("neighbors_of_embedding", "k", np.array(["1"])),
    ],
)
def test_other_dtypes_and_ranks_are_refused(endpoint, name, value, served):
    """As an object's method, by name, and as a signature."""
    specs = served.signatures[endpoint].structured_input_signature[1]
    inputs = {
        key: tf.constant(GOOD[key].astype(spec.dtype.as_numpy_dtype))
        for key, spec in specs.items()
    }
    getattr(served, endpoint)(**inputs)
    wrong = {**inputs, name: tf.constant(value)}
    with pytest.raises((TypeError, ValueError), match=name):
        getattr(served, endpoint)(**wrong)
    with pytest.raises(
        (TypeError, ValueError, tf.errors.InvalidArgumentError),
        match="expected|signature",
    ):
        served.signatures[endpoint](**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [True, False])
def test_similarity_is_every_cosine(normalize, make_embedder, tmp_path):
    embedder = make_embedder(normalize=normalize)
    folder = export_saved_model(embedder, tmp_path / "saved_model")
    served = tf.saved_model.load(str(folder))
    first, second = IMAGES[:2].astype("float32"), IMAGES[2:].astype("float32")
    answer = served.similarity(first, second)
    left, right = (to_numpy(embedder(images)) for images in (first, second))
    expected = left @ right.T
    expected /= np.linalg.norm(left, axis=1)[:, None]
    expected /= np.linalg.norm(right, axis=1)
    assert answer["similarity"].shape == (2, 3)
    np.testing.assert_allclose(answer["similarity"], expected, atol=1e-5)
    assert answer["pairs"].numpy() == 6


BARE_SEARCH = """
    import numpy as np
    import tensorflow as tf
    from scann.scann_ops.py import scann_ops

    served = tf.saved_model.load(sys.argv[1])
    files = np.load(sys.argv[2], allow_pickle=True)["files"]
    found = served.neighbors(tf.constant(list(files)), 3)
    for name in ("ids", "scores", "ok"):
        print(found[name].numpy().tolist())
    assert not sys.modules["keras_dml"]
"""


@pytest.mark.slow
def test_scann_answers_in_a_bare_process(make_embedder, run_bare, tmp_path):
    embedder = make_embedder()
    names = [name for name in FILES if "gif" not in name]
    files = [FILES[name] for name in names]
    plain = tf.saved_model.load(
        str(export_saved_model(embedder, tmp_path / "plain"))
    )
    rows = plain.serve_image_bytes(tf.constant(files))["embedding"].numpy()
    folder = export_saved_model(
        embedder,
        tmp_path / "saved_model",
        with_index=True,
        index="scann",
        gallery=EmbeddingSet(rows, names, np.array(names)),
    )
    asked = np.array([*files[:3], b"no image"], dtype=object)
    np.savez(tmp_path / "files.npz", files=asked)
    lines = run_bare(
        BARE_SEARCH, folder, tmp_path / "files.npz", absent=("keras_dml",)
    ).splitlines()
    ids, scores, ok = (ast.literal_eval(line) for line in lines[-3:])
    assert ok == [True, True, True, False]
    assert ids[3] == [b""] * 3
    exact = ExactIndex().build(rows, np.array(names))
    expected, expected_scores = exact.search(rows[:3], 3)
    np.testing.assert_allclose(scores[:3], expected_scores, atol=1e-5)
    assert [row[0].decode() for row in ids[:3]] == expected[:, 0].tolist()


@pytest.mark.parametrize(
    ("gallery", "message"),
    [
        (EmbeddingSet(np.ones((3, 9)), [0, 1, 2]), "8 dim.* Received: 9"),
        (EmbeddingSet(np.ones((0, 8))), "must be at least one embedding"),
        ("shoes", "`gallery` must be an `EmbeddingSet`"),
        (None, "`gallery` must be an `EmbeddingSet`"),
    ],
)
def test_galleries_that_cannot_be(gallery, message, make_embedder, tmp_path):
    with pytest.raises(UsageError, match=message):
        export_saved_model(
            make_embedder(), tmp_path / "m", with_index=True, gallery=gallery
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("labels", "ids", "expected"),
    [
        (["a", 'b, "c"', "a"], [7, 5, 6], ["7,a", '5,"b, ""c"""', "6,a"]),
        (None, None, ["0,", "1,", "2,"]),
        ([[1, 0, 1], [0, 1, 0], [0, 0, 0]], None, ["0,0|2", "1,1", "2,"]),
    ],
)
def test_labels(labels, ids, expected, tmp_path):
    embeddings = EmbeddingSet(np.ones((3, 2)), labels, ids)
    path = write_labels(tmp_path, embeddings)
    assert path.read_text().splitlines() == ["id,label", *expected]


def test_labels_travel_as_an_asset(indexed_folder):
    text = (indexed_folder / "assets" / "references.csv").read_text()
    assert text.splitlines()[:2] == ["id,label", "shoe 0,shoe 0"]


def test_foreign_folder_is_refused(make_embedder, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(UsageError, match="is not an export of keras-dml"):
        export_saved_model(make_embedder(), tmp_path)
    assert (tmp_path / "photo.jpg").read_bytes() == b"precious"
