# ruff: noqa: F401
"""Converts weights of other frameworks for the networks of this package."""

from keras_dml.models.conversion.convert import Conversion, convert_weights
from keras_dml.models.conversion.fitting import LAYOUTS, Layout, fit_checkpoint
