"""Calls in a process whose Keras runs on TensorFlow."""

import keras
import pytest

from keras_dml.checks import one_of
from keras_dml.errors import RunError, UsageError
from keras_dml.export import FORMATS, on_tensorflow


def test_what_cannot_be_passed_on_is_refused():
    images = (image for image in range(3))
    with pytest.raises(UsageError, match="options that another process"):
        on_tensorflow.call(len, images)


@pytest.mark.slow
def test_a_result_comes_back(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert on_tensorflow.call(keras.backend.backend) == "tensorflow"


@pytest.mark.slow
def test_a_mistake_of_the_caller_comes_back():
    with pytest.raises(UsageError, match="`format` must be"):
        on_tensorflow.call(one_of, "format", "paper", ("onnx",))


@pytest.mark.slow
def test_another_failure_is_explained(capfd):
    with pytest.raises(RunError, match="with exit code 1; its output says why"):
        on_tensorflow.call(int, "no number")
    assert "invalid literal" in capfd.readouterr().err


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_in_memory_is_refused_elsewhere(monkeypatch, tmp_path, name):
    if name == "onnx":
        pytest.importorskip("tf2onnx")
    monkeypatch.setattr(on_tensorflow, "is_here", lambda: False)
    image = keras.Input((8, 8, 3))
    pooled = keras.layers.GlobalAveragePooling2D()(image)
    output = tmp_path / "artifact"
    with pytest.raises(UsageError, match="with KERAS_BACKEND=tensorflow"):
        FORMATS[name].export(keras.Model(image, pooled), output, None, {})
    assert not any(tmp_path.iterdir())
