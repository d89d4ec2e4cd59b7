"""Runs a model on batches outside of training, on every backend."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_dml.models.folding import fold_for_inference

_FORWARD: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def forward_function(model: keras.Model) -> Callable[[Any], Any]:
    """Returns a function from batches of any size to float32 outputs.

    It runs on one device of this worker, where `predict` would embed every
    image on every replica. A model has one function, because compiling a
    network takes seconds.

    Args:
        model: Model of one input and one output. Keep it as long as the
            function, which does not.

    Returns:
        Function of an array or tensor that returns what `np.asarray` takes. A
        GPU may still be computing it.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> forward = forward_function(embedder)
    >>> np.asarray(forward(np.ones((2, 28, 28, 1)))).shape
    (2, 8)
    """
    if model not in _FORWARD:
        traces = keras.backend.backend() == "tensorflow"
        _FORWARD[model] = (_traced if traces else _predicting)(model)
    return _FORWARD[model]


def _traced(model: keras.Model) -> Callable[[Any], Any]:
    import tensorflow as tf

    (rows,) = model.inputs
    faster = fold_for_inference(model)
    alive = _alive_of(model) if faster is model else lambda: faster
    # TensorFlow counts retracing per Python function, but partial functions
    # one by one, so that several models cause no warning.
    forward = tf.function(
        functools.partial(_float32_outputs, alive),
        input_signature=[tf.TensorSpec((None, *rows.shape[1:]), rows.dtype)],
        autograph=False,
    )
    return lambda batch: forward(tf.cast(batch, rows.dtype))


def _float32_outputs(alive: Callable[[], keras.Model], batch: Any) -> Any:
    return ops.cast(alive()(batch, training=False), "float32")


def _predicting(model: keras.Model) -> Callable[[Any], Any]:
    alive = _alive_of(model)

    def forward(batch):
        whole = alive()
        batch = np.asarray(batch, whole.inputs[0].dtype)
        return np.asarray(whole.predict_on_batch(batch), np.float32)

    return forward


def _alive_of(model: keras.Model) -> Callable[[], keras.Model]:
    # A function that refers to its model would keep it for ever.
    found = weakref.ref(model)

    def alive():
        whole = found()
        assert whole is not None
        return whole

    return alive
