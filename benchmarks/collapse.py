"""How healthy and collapsing trainings differ in `embedding_health`.

    python benchmarks/collapse.py --omniglot omniglot.npz

A small network on 120 background characters of Omniglot, measured on 60
evaluation characters before the first step and after every 40 steps of 64
images. The limits of `collapse_warning` rest on its numbers.
"""

import argparse

import keras
import numpy as np
from keras import ops

from keras_dml import layers, losses
from keras_dml.evaluation import (
    collapse_warning,
    embedding_health,
    retrieval_metrics,
)
from keras_dml.models.small_cnn import small_cnn

SHOWN = ("effective_dim", "negative_similarity", "similarity_gap")
STEPS, CLASSES, IMAGES, SEED = 40, 16, 4, 0


class PullTogether(keras.losses.Loss):
    """Half of a contrastive loss: the half that collapses."""

    def call(self, y_true, y_pred):
        labels = ops.reshape(y_true, (-1, 1))
        same = ops.cast(labels == ops.transpose(labels), "float32")
        distance = 1.0 - ops.matmul(y_pred, ops.transpose(y_pred))
        return ops.mean(same * distance, axis=1)


TRAININGS = {
    "NormalizedSoftmax": (losses.NormalizedSoftmax, 1e-3),
    "MultiSimilarity": (losses.MultiSimilarity, 1e-3),
    "batch-hard triplets": (
        lambda: losses.Triplet(margin=0.2, mining="hard", average="all"),
        1e-3,
    ),
    "batch-hard triplets, fast": (
        lambda: losses.Triplet(margin=0.2, mining="hard", average="all"),
        1e-2,
    ),
    "pulls together only": (PullTogether, 1e-3),
}


def load(path, split, num_classes):
    with np.load(path) as file:
        chosen = np.unique(file["label"][file["split"] == split])[:num_classes]
        rows = np.isin(file["label"], chosen)
        images = file["images28"][rows][..., None] / np.float32(255)
        labels = np.unique(file["label"][rows], return_inverse=True)[1]
    return images, labels.astype("int32")


def batches(images, labels, seed):
    generator = np.random.default_rng(seed)
    rows = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    while True:
        chosen = generator.choice(len(rows), CLASSES, replace=False)
        batch = np.concatenate(
            [generator.choice(rows[c], IMAGES, replace=False) for c in chosen]
        )
        yield images[batch], labels[batch]


def build(loss, learning_rate, num_classes):
    keras.utils.set_random_seed(SEED)
    body = small_cnn((28, 28, 1), widths=(32, 64))
    head = keras.layers.GlobalAveragePooling2D()(body.output)
    head = keras.layers.Dense(64)(head)
    unit = keras.layers.UnitNormalization(dtype="float32")(head)
    output = unit
    if isinstance(loss, losses.NormalizedSoftmax):
        output = layers.Proxies(num_classes)(head)
        output = layers.ScaledLogits(16.0)(output)
    trainer = keras.Model(body.input, output)
    trainer.compile(keras.optimizers.Adam(learning_rate), loss)
    return trainer, keras.Model(body.input, unit)


def show(name, when, embedder, images, labels):
    embeddings = embedder.predict(images, verbose=0, batch_size=256)
    health = embedding_health(embeddings, labels)
    metrics = retrieval_metrics(embeddings, labels, k=1)
    print(
        f"{name:26} {when:3d}",
        *(f"{key} {health[key]:8.4f}" for key in SHOWN),
        *(f"{key} {metrics[key]:.3f}" for key in ("recall@1", "map@r")),
        collapse_warning(health) or "",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--omniglot", required=True)
    parser.add_argument("--epochs", type=int, default=4)
    arguments = parser.parse_args()
    train = load(arguments.omniglot, 0, 120)
    test = load(arguments.omniglot, 1, 60)
    for name, (make_loss, learning_rate) in TRAININGS.items():
        trainer, embedder = build(make_loss(), learning_rate, 120)
        show(name, 0, embedder, *test)
        for epoch in range(arguments.epochs):
            trainer.fit(
                batches(*train, seed=epoch),
                steps_per_epoch=STEPS,
                shuffle=False,
                verbose=0,
            )
            show(name, epoch + 1, embedder, *test)


if __name__ == "__main__":
    main()
