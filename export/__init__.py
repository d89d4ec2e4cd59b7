"""Files to ship: SavedModel and LiteRT, checked against the embedder."""

from keras_dml.export.export_embedder import FORMATS, export_embedder
from keras_dml.export.litert import export_litert
from keras_dml.export.parity import parity
from keras_dml.export.saved_model import export_saved_model

__all__ = [
    "FORMATS",
    "export_embedder",
    "export_litert",
    "export_saved_model",
    "parity",
]
