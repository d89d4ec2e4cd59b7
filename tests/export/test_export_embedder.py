"""All formats at once, and their comparison with the embedder."""

import json

import numpy as np
import pytest

from keras_dml.data import readers
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.errors import UsageError
from keras_dml.export import export_embedder, parity

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 3)
CENTRES = RNG.uniform(0, 255, (4, 16, 16, 3))[LABELS]
IMAGES = np.clip(CENTRES + RNG.normal(0, 20, CENTRES.shape), 0, 255)


def test_rows_and_files(make_embedder, tmp_path):
    rows = export_embedder(
        make_embedder(),
        ["saved_model", "litert"],
        tmp_path / "export",
        IMAGES,
        LABELS,
        metadata={"recipe": "bn"},
    )
    names = [row["artefact"] for row in rows]
    assert names == ["embedder", "saved_model", "litert"]
    for row in rows:
        assert row["images"] == 12
        assert row["worst_cosine"] > 0.9999
        assert row["mean_cosine"] >= row["worst_cosine"]
        assert row["recall@1"] == rows[0]["recall@1"] > 0.9
        assert row["map@r"] == pytest.approx(rows[0]["map@r"], abs=0.01)
        assert row["megabytes"] > 0
    for row in rows[1:]:
        folder = tmp_path / "export" / row["artefact"]
        report = json.loads((folder / "parity.json").read_text())
        assert report == [rows[0], row]
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["recipe"] == "bn"


def test_parity_sees_a_difference(make_embedder, tmp_path):
    """The artefact of another model is found out."""
    embedder = make_embedder()
    export_embedder(embedder, ["saved_model"], tmp_path, IMAGES)
    for weight in embedder.trainable_weights:
        weight.assign(weight + 0.05)
    rows = parity(
        embedder, {"saved_model": tmp_path / "saved_model"}, IMAGES, LABELS
    )
    assert rows[0]["worst_cosine"] == pytest.approx(1)
    assert rows[1]["worst_cosine"] < 0.999


def test_exporting_again_replaces(make_embedder, tmp_path):
    for _ in range(2):
        export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["litert"]


def test_without_labels_there_is_no_retrieval(make_embedder, tmp_path):
    rows = export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert "map@r" not in rows[0]


def test_unknown_format_is_refused_before_anything_is_written(
    make_embedder, tmp_path
):
    with pytest.raises(UsageError, match=r"'tflite'\. Nearest: 'litert'"):
        export_embedder(
            make_embedder(), ["saved_model", "tflite"], tmp_path, IMAGES
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("letter", ["litert/letter.txt", "letter.txt"])
def test_other_things_in_the_output_need_force(letter, make_embedder, tmp_path):
    (tmp_path / "litert").mkdir()
    (tmp_path / letter).write_text("dear")
    with pytest.raises(UsageError, match="`--output` is not empty"):
        export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert (tmp_path / letter).read_text() == "dear"
    export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES, force=True)
    assert (tmp_path / "litert" / "embedder.tflite").is_file()
    assert (tmp_path / "letter.txt").exists() == (letter == "letter.txt")


def test_output_that_is_a_file_is_refused(make_embedder, tmp_path):
    (tmp_path / "file").write_text("dear")
    with pytest.raises(UsageError, match="`--output` is not empty"):
        export_embedder(make_embedder(), ["litert"], tmp_path / "file", IMAGES)


def test_what_a_kill_left_behind_is_not_in_the_way(make_embedder, tmp_path):
    (tmp_path / ".litert.partial").mkdir()
    (tmp_path / ".litert.partial" / "embedder.tflite").write_text("half")
    export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["litert"]


def test_no_images_is_refused(make_embedder):
    with pytest.raises(UsageError, match="at least one image"):
        parity(make_embedder(), {}, IMAGES[:0])


@pytest.mark.data
@pytest.mark.slow
def test_real_images_are_found_as_well(make_embedder, test_data, tmp_path):
    photos = readers.read(str(test_data / "grocery81_96"))
    photos = photos.select(np.flatnonzero(photos.labels >= 75)[::4])
    weights = "mobilenetv2_imagenet/mobilenetv2_1.0_224_notop.weights.h5"
    embedder = make_embedder(
        size=96, backbone="mobilenet_v2", weights=str(test_data / weights)
    )
    batches = evaluation_batches(photos, batch_size=64, image_size=96)
    images = np.concatenate([inputs["image"] for inputs, _ in batches])
    rows = export_embedder(
        embedder, ["saved_model", "litert"], tmp_path, images, photos.labels
    )
    for row in rows[1:]:
        assert row["worst_cosine"] > 0.9999
        assert row["recall@1"] == pytest.approx(rows[0]["recall@1"], abs=0.02)
        assert row["map@r"] == pytest.approx(rows[0]["map@r"], abs=0.01)
