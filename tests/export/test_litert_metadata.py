"""What a `.tflite` says about itself, to both kinds of readers."""

import json
import subprocess
import sys
import zipfile

import pytest
from tensorflow.lite.python import schema_py_generated as schema

from keras_dml.errors import RunError
from keras_dml.export import export_litert, read_metadata
from tests.export.clients import run_litert
from tests.export.test_litert import IMAGES

pytestmark = pytest.mark.slow

METADATA = {"recipe": "hbn", "labels": ["apple", "crème brûlée"]}


@pytest.fixture
def file(make_embedder, tmp_path):
    folder = export_litert(
        make_embedder(), tmp_path / "litert", metadata=METADATA
    )
    return folder / "embedder.tflite"


def test_the_manifest_is_inside_the_file(file):
    beside = json.loads((file.parent / "manifest.json").read_text())
    assert read_metadata(file) == beside
    assert beside["recipe"] == "hbn"
    assert beside["image"]["normalization"] == {
        "inside_model": True,
        "order": "RGB",
        "mean": [0.0],
        "deviation": [255.0],
    }


def test_python_alone_reads_it(file):
    """Neither numpy nor flatbuffers: no site packages at all."""
    code = (
        "import json, sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
        "print(json.loads(z.read('manifest.json'))['recipe'])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, file],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "hbn\n", done.stderr


def test_labels_are_a_file_of_their_own(file):
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        labels = archive.read("labels.txt").decode().splitlines()
    assert labels == METADATA["labels"]


def follow(table, slot):
    return table.Pos + table.Offset(4 + 2 * slot)


def text(table, slot):
    return table.String(follow(table, slot)).decode()


def test_the_standard_table_names_version_and_files(file):
    """As the published schema numbers its fields."""
    from flatbuffers.table import Table

    model = schema.Model.GetRootAs(file.read_bytes(), 0)
    entries = {
        model.Metadata(i).Name(): model.Metadata(i).Buffer()
        for i in range(model.MetadataLength())
    }
    content = model.Buffers(entries[b"TFLITE_METADATA"]).DataAsNumpy().tobytes()
    assert content[4:8] == b"M001"
    root = Table(content, int.from_bytes(content[:4], "little"))
    assert text(root, 0) == "embedder"
    assert "hbn" in text(root, 1)
    assert text(root, 2) == read_metadata(file)["version"]
    vector = root.Vector(root.Offset(4 + 2 * 6))
    files = [
        text(Table(content, root.Indirect(vector + 4 * i)), 0) for i in range(2)
    ]
    assert files == ["manifest.json", "labels.txt"]


def test_the_file_still_runs(file):
    assert run_litert(file.parent, IMAGES[:1]).shape == (1, 8)


def test_the_same_model_makes_the_same_file(file):
    """The archive notes no time of day."""
    with zipfile.ZipFile(file) as archive:
        dates = {entry.date_time for entry in archive.infolist()}
    assert dates == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("content", [None, b"", b"TFL3 and no archive"])
def test_a_file_without_metadata_is_refused(content, tmp_path):
    path = tmp_path / "other.tflite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match="holds no metadata of keras-dml"):
        read_metadata(path)
