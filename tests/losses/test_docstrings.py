"""The examples in the docstrings of losses and their maths are run."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from keras import ops

import keras_dml
from keras_dml import losses
from keras_dml import ops as own_ops

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (losses, own_ops)
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {**vars(module), "np": np, "ops": ops, "keras_dml": keras_dml}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(module, globs=names):
        assert runner.run(example).failed == 0
