"""Files to ship, checked against the embedder they were made of."""

from keras_dml.export.artefact import read_manifest
from keras_dml.export.export_embedder import (
    FORMATS,
    artefact_name,
    export_embedder,
)
from keras_dml.export.gallery import Gallery, write_gallery
from keras_dml.export.index_parity import index_parity
from keras_dml.export.litert import export_litert
from keras_dml.export.litert_conversion import QUANTIZATIONS
from keras_dml.export.litert_metadata import read_metadata
from keras_dml.export.onnx import export_onnx
from keras_dml.export.parity import parity
from keras_dml.export.references import References
from keras_dml.export.runners import open_artefact
from keras_dml.export.runs import export_run, exporter
from keras_dml.export.saved_model import export_saved_model

__all__ = [
    "FORMATS",
    "Gallery",
    "QUANTIZATIONS",
    "References",
    "artefact_name",
    "export_embedder",
    "export_litert",
    "export_onnx",
    "export_run",
    "export_saved_model",
    "exporter",
    "index_parity",
    "open_artefact",
    "parity",
    "read_manifest",
    "read_metadata",
    "write_gallery",
]
