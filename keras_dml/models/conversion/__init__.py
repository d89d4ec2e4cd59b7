"""Weights of other frameworks, converted for the networks built here."""

from keras_dml.models.conversion.convert import Conversion, convert_weights
from keras_dml.models.conversion.fitting import fit_checkpoint
from keras_dml.models.conversion.layouts import LAYOUTS, Layout

__all__ = [
    "Conversion",
    "LAYOUTS",
    "Layout",
    "convert_weights",
    "fit_checkpoint",
]
