# ruff: noqa: F401
"""Exports an embedder to files, and compares them with the embedder."""

import importlib
import os
import pkgutil

from keras_dml.export.artifact import read_manifest
from keras_dml.export.exporting import ExportResult, export_embedder
from keras_dml.export.formats import FORMATS, Format, Runner, open_artifact
from keras_dml.export.index_parity import index_parity
from keras_dml.export.litert import export_litert
from keras_dml.export.litert_metadata import read_metadata
from keras_dml.export.onnx import export_onnx
from keras_dml.export.options import (
    INDEXES,
    QUANTIZATIONS,
    ExportOptions,
    References,
)
from keras_dml.export.parity import parity
from keras_dml.export.runs import DEFAULT_FORMATS, export_run, exporter
from keras_dml.export.saved_model import export_saved_model

# Importing a module registers its `Format` in `FORMATS`.
for _module in pkgutil.iter_modules([os.path.dirname(__file__)]):
    importlib.import_module(f"keras_dml.export.{_module.name}")
