"""Losses on class labels: a pure function and a thin class in each file.

The name of a file is the key of its loss, in `get` and in recipes. The package
finds its losses by reading this folder: a new loss needs no entry anywhere.
"""

from typing import TYPE_CHECKING

from keras_dml.losses.registry import (
    DISTILLATIONS,
    LOSSES,
    PUBLIC,
    deserialize,
    get,
    input_of,
    serialize,
)

globals().update(PUBLIC)
__all__ = ["DISTILLATIONS", "LOSSES", "deserialize", "get", "input_of"]
__all__ += ["serialize"]
__all__ += sorted(PUBLIC)

if TYPE_CHECKING:

    def __getattr__(name: str): ...
