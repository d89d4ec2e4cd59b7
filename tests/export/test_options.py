"""What an export may be asked for."""

import json

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.export import ExportOptions, export_litert, export_onnx
from keras_dml.export.options import OWN_FIELDS


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "shop"}, "without the manifest's own.*'format'.*Rename"),
        ({"owner": "me", "version": 3, "index": 1}, "'version', 'index'"),
        ({"scores": np.ones(2)}, "JSON.*ndarray"),
        ({"owner": {1, 2}}, "`metadata`.*set"),
        (["owner"], "`metadata` must be a dict"),
        ("owner", "`metadata` must be a dict"),
    ],
)
def test_metadata_that_no_manifest_can_hold(metadata, message):
    with pytest.raises(UsageError, match=message):
        ExportOptions(metadata=metadata)


@pytest.mark.parametrize(
    "given", [{"index": "scann"}, {"max_k": 500}, {"gallery": "shoes"}]
)
def test_what_only_an_index_takes_needs_one(given):
    (name,) = given
    message = rf"`{name}` is for an index. Received: .*Pass `with_index=True`"
    with pytest.raises(UsageError, match=message):
        ExportOptions(**given)
    assert ExportOptions(**given, with_index=True).with_index


def test_every_own_field_of_a_manifest_is_reserved(
    make_embedder, indexed_folder, tmp_path
):
    for name in ("onnx", "onnxruntime", "tf2onnx"):
        pytest.importorskip(name)
    folders = [
        indexed_folder,
        export_litert(make_embedder(), tmp_path / "litert"),
        export_onnx(make_embedder(), tmp_path / "onnx"),
    ]
    manifests = [
        json.loads((folder / "manifest.json").read_text()) for folder in folders
    ]
    assert set().union(*manifests) == {*OWN_FIELDS}
