"""What an export at the end of a training needs is known before it."""

import sys

import pytest

from keras_dml.errors import UsageError
from keras_dml.export import export_run, exporter


@pytest.mark.parametrize(
    ("formats", "changes", "message"),
    [
        ("saved_model", {"with_index": True}, "with `export_run`"),
        ("onnx", {}, r"keras-dml\[onnx\]"),
        ([], {}, "`formats` must be one or more of"),
        ("litert", {"with_index": True}, "`with_index` is for a SavedModel"),
    ],
)
def test_what_would_fail_after_the_training(
    formats, changes, message, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(UsageError, match=message):
        exporter(formats, **changes)


def test_a_package_is_asked_for_before_the_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(UsageError, match=r"keras-dml\[onnx\]"):
        export_run("no/such/run", "onnx")
