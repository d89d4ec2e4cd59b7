"""Steps that several laws of the losses take."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.models import get_head
from keras_dml.models.head import label_input
from keras_dml.models.prefixes import connect_head
from tests.losses.cases import CASES

# Inner products and squared distances of vectors that are not normalized.
UNBOUNDED = {
    name
    for name, case in CASES.items()
    if not getattr(case.make(), "normalize", True)
}
WITH_PROXIES = pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.class_axis == 1]
)


def value_and_gradient(loss, labels, y_pred):
    y_pred = tf.convert_to_tensor(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        value = loss(labels, y_pred)
    return value, tape.gradient(value, y_pred)


def assert_finite(*tensors):
    for tensor in tensors:
        # `None` would be a graph that is not connected.
        assert tensor is not None
        assert np.isfinite(tf.convert_to_tensor(tensor)).all()


def head_of(case):
    return get_head(case.head or case.cls.takes)


def head_model(case, classes):
    """The head as a model of embeddings and labels."""
    embedding = keras.Input((5,))
    label = label_input()
    y_pred = connected(case, embedding, label, classes)
    return keras.Model([embedding, label], y_pred)


def connected(case, embedding, label, classes):
    head = head_of(case)
    return connect_head(head, embedding, label, classes, case.options())
