"""The examples in all docstrings are run."""

import doctest
import importlib
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_dml

MODULES = [
    module.name
    for module in pkgutil.walk_packages(keras_dml.__path__, "keras_dml.")
    if not module.name.endswith("__main__")
]
NEEDS = {
    "keras_dml.embed.beam": "apache_beam",
    "keras_dml.embed.beam_job": "apache_beam",
    "keras_dml.evaluation.index.scann": "scann",
}
# What a reader of an example has at hand.
KNOWN = {
    "keras": keras,
    "keras_dml": keras_dml,
    "np": np,
    "ops": keras.ops,
    "tf": tf,
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs an extra.")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    names = {**vars(module), **KNOWN}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(module, globs=names):
        keras.utils.set_random_seed(0)
        assert runner.run(example).failed == 0
