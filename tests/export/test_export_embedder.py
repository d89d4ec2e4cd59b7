"""All formats at once, and their comparison with the embedder."""

import json
import sys

import keras
import numpy as np
import pytest

from keras_dml.data import readers
from keras_dml.data.pipeline import evaluation_batches
from keras_dml.errors import RunError, UsageError
from keras_dml.export import (
    FORMATS,
    ExportOptions,
    References,
    export_embedder,
    export_litert,
    export_onnx,
    parity,
)
from keras_dml.export.artifact import make_manifest
from keras_dml.export.formats import Format, Runner, open_artifact
from keras_dml.export.litert import LiteRT
from keras_dml.export.saved_model import SavedModel

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 3)
CENTERS = RNG.uniform(0, 255, (4, 16, 16, 3))[LABELS]
IMAGES = np.clip(CENTERS + RNG.normal(0, 20, CENTERS.shape), 0, 255)


@pytest.mark.slow
def test_rows_and_files(make_embedder, tmp_path):
    rows = export_embedder(
        make_embedder(),
        ["saved_model", "litert"],
        tmp_path / "export",
        IMAGES,
        LABELS,
        metadata={"recipe": "bn"},
    )
    names = [row["artifact"] for row in rows]
    assert names == ["embedder", "saved_model", "litert"]
    for row in rows:
        assert row["images"] == 12
        assert row["worst_cosine"] > 0.9999
        assert row["mean_cosine"] >= row["worst_cosine"]
        assert row["recall@1"] == rows[0]["recall@1"] > 0.9
        assert row["map@r"] == pytest.approx(rows[0]["map@r"], abs=0.01)
        assert row["megabytes"] > 0
        assert 0 < row["batch_1_ms"] < row["batch_32_ms"]
    for row in rows[1:]:
        folder = tmp_path / "export" / row["artifact"]
        report = json.loads((folder / "parity.json").read_text())
        assert report == [rows[0], row]
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["recipe"] == "bn"


@pytest.mark.slow
def test_parity_sees_a_difference(make_embedder, tmp_path):
    """The artifact of another model is found out."""
    embedder = make_embedder()
    export_embedder(embedder, ["saved_model"], tmp_path, IMAGES)
    for weight in embedder.trainable_weights:
        weight.assign(weight + 0.05)
    rows = parity(
        embedder, {"saved_model": tmp_path / "saved_model"}, IMAGES, LABELS
    )
    assert rows[0]["worst_cosine"] == pytest.approx(1)
    assert rows[1]["worst_cosine"] < 0.999


@pytest.mark.slow
def test_quantizations_are_artifacts_of_their_own(make_embedder, tmp_path):
    rows = export_embedder(
        make_embedder(),
        ["litert"],
        tmp_path,
        IMAGES,
        LABELS,
        quantize=["none", "int8"],
        dynamic_batch=True,
        calibration=IMAGES.astype("uint8"),
        references=References([IMAGES], LABELS, LABELS),
        max_drop=0.2,
    )
    names = ["litert-dynamic_batch", "litert-int8-dynamic_batch"]
    assert [row["artifact"] for row in rows[1:]] == names
    assert rows[2]["megabytes"] < 0.31 * rows[1]["megabytes"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name / "references.bin").is_file()


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("saved_model", {}, ["saved_model"]),
        ("litert", {"quantize": "float16"}, ["litert-float16"]),
        (
            "litert",
            {"quantize": ["none", "int8"], "dynamic_batch": True},
            ["litert-dynamic_batch", "litert-int8-dynamic_batch"],
        ),
    ],
)
def test_artifact_names(name, options, expected):
    artifacts = FORMATS[name].artifacts(ExportOptions(**options))
    assert list(artifacts) == expected


def test_one_artifact_at_a_path(make_embedder, tmp_path):
    with pytest.raises(UsageError, match="for 2. Use `export_embedder`"):
        export_litert(
            make_embedder(), tmp_path / "m", quantize=["none", "float16"]
        )


@pytest.mark.slow
def test_a_new_format_is_one_class(make_embedder, tmp_path):
    """It is found by its name, written, opened and compared."""

    class Weights(Format):
        name = "weights"
        title = "weights"

        def write(self, embedder, folder, options):
            embedder.save(folder / "model.keras")
            return make_manifest(embedder, options, format=self.name)

        def open(self, folder, manifest, threads):
            model = keras.saving.load_model(folder / "model.keras")
            return Runner(np.asarray, model.predict_on_batch)

    try:
        rows = export_embedder(make_embedder(), "weights", tmp_path, IMAGES)
        assert rows[1]["worst_cosine"] > 0.9999
        assert open_artifact(tmp_path / "weights").search is None
    finally:
        FORMATS.pop("weights", None)


@pytest.mark.slow
def test_the_result_prints_its_rows(make_embedder, tmp_path):
    result = export_embedder(make_embedder(), "litert", tmp_path, IMAGES)
    text = repr(result)
    assert str(tmp_path) in text and "mean_cosine" in text
    assert len(text.splitlines()) == 1 + 1 + len(result)
    assert result[-1] == result[:][1]


def left(folder):
    return sorted(entry.name for entry in folder.iterdir())


def written_with(format_class, factor):
    """The method `write` for a model whose weights are multiplied."""
    write = format_class.write

    def wrong(self, embedder, folder, options):
        other = keras.models.clone_model(embedder)
        weights = [factor * weight for weight in embedder.get_weights()]
        other.set_weights(weights)
        return write(self, other, folder, options)

    return wrong


@pytest.mark.slow
def test_an_artifact_that_drops_too_much_is_rejected(
    make_embedder, tmp_path, monkeypatch
):
    embedder = make_embedder()
    export_embedder(embedder, ["litert"], tmp_path, IMAGES, LABELS)
    earlier = (tmp_path / "litert" / "manifest.json").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(LiteRT, "write", written_with(LiteRT, 0))
        with pytest.raises(RunError, match=r"max_drop.* 0\.01.*litert has rec"):
            export_embedder(
                embedder,
                ["saved_model", "litert"],
                tmp_path,
                IMAGES,
                LABELS,
                max_drop=0.01,
                metadata={"recipe": "new"},
            )
    # The good one is there, the earlier one too, and the bad one aside.
    assert left(tmp_path) == ["litert", "litert.rejected", "saved_model"]
    assert (tmp_path / "litert" / "manifest.json").read_text() == earlier
    report = json.loads(
        (tmp_path / "litert.rejected" / "parity.json").read_text()
    )
    assert report[1]["map@r"] < report[0]["map@r"] - 0.01
    # A later export that passes clears it away.
    export_embedder(
        embedder, ["litert"], tmp_path, IMAGES, LABELS, max_drop=0.01
    )
    assert left(tmp_path) == ["litert", "saved_model"]


@pytest.mark.slow
def test_a_failing_check_leaves_all_as_it_was(make_embedder, tmp_path):
    def check():
        raise RunError("The run changed.")

    for output in (tmp_path, tmp_path / "new" / "folder"):
        with pytest.raises(RunError, match="The run changed"):
            export_embedder(
                make_embedder(), ["litert"], output, IMAGES, check=check
            )
    assert left(tmp_path) == []


def test_a_second_export_at_the_same_time_is_refused(make_embedder, tmp_path):
    embedder = make_embedder()

    def check():
        with pytest.raises(UsageError, match="Another process is exporting"):
            export_embedder(embedder, "litert", tmp_path, IMAGES)

    export_embedder(embedder, "litert", tmp_path, IMAGES, check=check)
    assert left(tmp_path) == ["litert"]
    assert open_artifact(tmp_path / "litert")
    export_embedder(embedder, "litert", tmp_path, IMAGES)
    assert left(tmp_path) == ["litert"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantize": ["int9"]}, r"'int9'\. Did you mean 'int8'"),
        ({"quantize": ()}, r"`quantize` must be one or more of none,.*\(\)"),
        ({"formats": []}, r"`formats` must be one or more of .*litert"),
        ({"quantize": ["int8"]}, "at least one image"),
        ({"max_drop": 0.01}, "needs `labels`"),
        ({"max_drop": -1.0, "labels": LABELS}, "at least zero"),
        (
            {"quantize": ["int8"], "formats": ["saved_model"]},
            "Add the format `litert`",
        ),
        ({"references": True}, "must be `References` where no run"),
        ({"gallery": "shoes"}, "Pass `with_index=True`"),
        ({"max_pixels": 9}, "`max_pixels` is for a SavedModel"),
    ],
)
def test_arguments_that_do_not_go_together(
    arguments, message, make_embedder, tmp_path
):
    arguments = {"formats": ["litert"], "labels": None, **arguments}
    with pytest.raises(UsageError, match=message):
        export_embedder(
            make_embedder(), output=tmp_path / "new", images=IMAGES, **arguments
        )
    assert left(tmp_path) == []


def test_without_the_packages_of_onnx_it_says_what_to_install(
    make_embedder, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    for export in (
        lambda: export_onnx(make_embedder(), tmp_path / "onnx"),
        lambda: export_embedder(make_embedder(), ["onnx"], tmp_path, IMAGES),
    ):
        with pytest.raises(UsageError, match=r"keras-dml\[onnx\]"):
            export()
    assert not list(tmp_path.iterdir())


def test_an_artifact_that_gives_nan_is_found_out(
    make_embedder, tmp_path, monkeypatch
):
    monkeypatch.setattr(SavedModel, "write", written_with(SavedModel, np.nan))
    with pytest.raises(RunError, match="'saved_model' are not all finite"):
        export_embedder(
            make_embedder(), ["saved_model"], tmp_path, IMAGES, LABELS
        )
    assert left(tmp_path) == []


@pytest.mark.slow
def test_exporting_again_replaces(make_embedder, tmp_path):
    for _ in range(2):
        export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["litert"]


@pytest.mark.slow
def test_without_labels_there_is_no_retrieval(make_embedder, tmp_path):
    rows = export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert "map@r" not in rows[0]


def test_unknown_format_is_refused_before_anything_is_written(
    make_embedder, tmp_path
):
    with pytest.raises(UsageError, match=r"'tflite'\. Did you mean 'litert'"):
        export_embedder(
            make_embedder(), ["saved_model", "tflite"], tmp_path, IMAGES
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["litert/letter.txt", "letter.txt"])
def test_other_things_in_the_output_need_force(letter, make_embedder, tmp_path):
    (tmp_path / "litert").mkdir()
    (tmp_path / letter).write_text("dear")
    with pytest.raises(UsageError, match="`output` is not empty"):
        export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES)
    assert (tmp_path / letter).read_text() == "dear"
    export_embedder(make_embedder(), ["litert"], tmp_path, IMAGES, force=True)
    assert (tmp_path / "litert" / "embedder.tflite").is_file()
    assert (tmp_path / "letter.txt").exists() == (letter == "letter.txt")


def test_output_that_is_a_file_is_refused(make_embedder, tmp_path):
    (tmp_path / "file").write_text("dear")
    with pytest.raises(UsageError, match="`output` is not empty"):
        export_embedder(make_embedder(), ["litert"], tmp_path / "file", IMAGES)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".litert.partial", ".export.candidate"])
def test_what_a_kill_left_behind_is_not_in_the_way(
    name, make_embedder, tmp_path
):
    (tmp_path / name).mkdir()
    (tmp_path / name / "embedder.tflite").write_text("half")
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
