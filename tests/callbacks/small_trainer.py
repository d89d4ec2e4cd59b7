"""A trainer that takes milliseconds, and what the tests ask of it."""

import keras
import numpy as np
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.optimizers import PerVariable

RNG = np.random.default_rng(0)
LABELS = (np.arange(24) % 4).astype("int32")
DATA = (RNG.standard_normal((4, 6))[LABELS] * 2).astype("float32")
DATA += RNG.standard_normal(DATA.shape).astype("float32")


def per_variable():
    return PerVariable(
        keras.optimizers.Adam(0.01, name="backbone"),
        {"proxies/.*": keras.optimizers.SGD(0.5, name="proxies")},
    )


def build(optimizer=None, scale=16.0):
    """The trainer, compiled, and the embedder that shares its layers."""
    keras.utils.set_random_seed(0)
    x = keras.Input((6,), name="image")
    h = keras.layers.Dense(6, name="backbone")(x)
    h = layers.EmbeddingHead(5, name="head")(h)
    unit = keras.layers.UnitNormalization(dtype="float32", name="unit")(h)
    z = layers.Proxies(4, name="proxies")(h)
    z = layers.ScaledLogits(scale, name="logits")(z)
    trainer = keras.Model(x, z)
    trainer.compile(
        optimizer or keras.optimizers.SGD(0.1), losses.NormalizedSoftmax()
    )
    return trainer, keras.Model(x, unit)


def batches():
    return tf.data.Dataset.from_tensor_slices((DATA, LABELS)).batch(8)


def fit(trainer, epochs, callbacks=(), initial_epoch=0):
    return trainer.fit(
        batches(),
        epochs=epochs,
        initial_epoch=initial_epoch,
        callbacks=list(callbacks),
        verbose=0,
        shuffle=False,
    ).history


def drive(trainer, callbacks, values, initial_epoch=0, read=None):
    """Runs the epoch hooks without training; `values` are the metric's.

    Returns what `read` gives in every epoch, until a callback stops it.
    """
    found = []
    trainer.stop_training = False
    for callback in callbacks:
        callback.set_model(trainer)
        callback.on_train_begin()
    for epoch in range(initial_epoch, len(values)):
        logs = {"loss": 1.0, "val_recall@1": values[epoch]}
        for callback in callbacks:
            callback.on_epoch_begin(epoch)
        for callback in callbacks:
            callback.on_epoch_end(epoch, logs)
        found.append(read(trainer) if read else None)
        if trainer.stop_training:
            break
    return found


class Record(keras.callbacks.Callback):
    """Notes what `read` gives during every epoch."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.values = []

    def on_epoch_end(self, epoch, logs=None):
        self.values.append(self.read(self.model))
