"""Converts weights of other frameworks for the networks of this package."""

from keras_dml.models.conversion.convert import Conversion, convert_weights
from keras_dml.models.conversion.fitting import (
    LAYOUTS,
    Layout,
    fit_checkpoint,
)

__all__ = [
    "Conversion",
    "LAYOUTS",
    "Layout",
    "convert_weights",
    "fit_checkpoint",
]
