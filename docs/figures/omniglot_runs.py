"""Trainings on some characters of Omniglot, which three figures look at."""

import functools

import keras
import numpy as np

from keras_dml import data, layers, losses
from keras_dml.callbacks import CountEpochs, RetrievalEvaluation
from keras_dml.models import small_cnn
from keras_dml.optimizers import PerVariable

CLASSES = 40  # seen, and as many unseen
BATCH, DIM = 40, 64
EPOCHS, QUICK_EPOCHS, EVERY = 12, 3, 3
NAMES = {
    "norm_softmax": "normalized softmax",
    "proxy_anchor": "Proxy-Anchor",
    "proxy_isa": "Proxy-ISA",
}


@functools.cache
def load(data_dir, seed):
    """Images of 14 pixels in 0..1 and labels: seen and unseen characters."""
    manifest = data.read("omniglot", data_dir)
    generator = np.random.default_rng(seed)
    parts = {}
    for name, split in (("seen", "train"), ("unseen", "test")):
        classes = np.unique(manifest.labels[manifest.split == split])
        chosen = generator.choice(classes, CLASSES, replace=False)
        rows = np.flatnonzero(np.isin(manifest.labels, chosen))
        labels = np.unique(manifest.labels[rows], return_inverse=True)[1]
        images = manifest.images[rows] / np.float32(255)
        images = images.reshape(-1, 14, 2, 14, 2, 1).mean(axis=(2, 4))
        parts[name] = (images, labels)
    return parts


def head(name, images):
    """The proxies of a loss, and the loss."""
    if name == "norm_softmax":
        proxies = layers.Proxies(CLASSES, name="proxies")
        logits = layers.ScaledLogits(16.0, name="logits")
        return lambda x, _: logits(proxies(x)), losses.NormalizedSoftmax()
    if name == "proxy_anchor":
        proxies = layers.Proxies(
            CLASSES, initializer="he_fan_out", name="proxies"
        )
        return lambda x, _: proxies(x), losses.ProxyAnchor()
    proxies = layers.SampleAwareProxies(
        CLASSES,
        memory_size=9 * images,  # 9 epochs, as 55,000 on CUB
        name="proxies",
    )
    return lambda x, labels: proxies([x, labels]), losses.ProxyISA()


class Snapshots(keras.callbacks.Callback):
    """Keeps the embeddings of images and the proxies after some epochs."""

    def __init__(self, embedder, images, epochs):
        super().__init__()
        self.embedder, self.images, self.epochs = embedder, images, epochs
        self.taken: dict[int, tuple] = {}

    def take(self, epoch):
        layer = self.model.get_layer("proxies")
        proxies = getattr(layer, "similarity", layer).proxies
        self.taken[epoch] = (
            self.embedder.predict(self.images, batch_size=240, verbose=0),
            keras.ops.convert_to_numpy(proxies),
        )

    def on_train_begin(self, logs=None):
        if 0 in self.epochs:
            self.take(0)

    def on_epoch_end(self, epoch, logs=None):
        if epoch + 1 in self.epochs:
            self.take(epoch + 1)


@functools.cache
def train(name, data_dir, seed, quick=False):
    """Trains on the seen characters, once in a process.

    Args:
        name: One of `NAMES`.
        data_dir: String, the folder that holds Omniglot.
        seed: Integer, that of the characters too.
        quick: Boolean, whether to train for few epochs. Defaults to `False`.

    Returns:
        Dict of the number of epochs, 0, 1, 5 and the last, to a tuple of the
        seen images' embeddings and the proxies; and the history of `fit`,
        with `seen_map@r` and `unseen_map@r` after every third epoch.
    """
    keras.utils.set_random_seed(seed)
    epochs = QUICK_EPOCHS if quick else EPOCHS
    parts = load(data_dir, seed)
    images, labels = parts["seen"]
    network = small_cnn(images.shape[1:], widths=(32,), stem=16)
    label = keras.Input((), dtype="int32", name="label")
    x = keras.layers.GlobalAveragePooling2D()(network.output)
    x = layers.EmbeddingHead(DIM, layer_norm=False, name="head")(x)
    output, loss = head(name, len(images))
    trainer = keras.Model([network.input, label], output(x, label))
    embedder = keras.Model(network.input, x)
    trainer.compile(
        PerVariable(
            keras.optimizers.Adam(1e-3, name="network"),
            {"proxies/.*": keras.optimizers.Adam(1e-1, name="proxies")},
        ),
        loss,
    )
    snapshots = Snapshots(embedder, images, {0, 1, 5, epochs})
    callbacks = [snapshots]
    for part, rows in parts.items():
        callbacks.append(
            RetrievalEvaluation(
                embedder, rows, prefix=f"{part}_", every=EVERY, batch_size=240
            )
        )
    if isinstance(trainer.get_layer("proxies"), layers.SampleAwareProxies):
        callbacks.append(CountEpochs())
    history = trainer.fit(
        [images, labels],
        labels,
        batch_size=BATCH,
        epochs=epochs,
        callbacks=callbacks,
        verbose=0,
    )
    return snapshots.taken, history.history
