"""Our side of `training_peer.py`, and the bare Keras step."""

import sys
import time

import keras
import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps
from sides import answer

import keras_dml
from keras_dml.config import flags_of, resolve
from keras_dml.run.batches import make_sampler, train_batches
from keras_dml.run.compiling import compile_for
from keras_dml.run.data import load_run_data, stage_data
from keras_dml.run.models import build_models
from keras_dml.run.pace import TIMED_STEPS, UNTIMED_STEPS, step_times
from keras_dml.run.settling import settle

BACKBONE = "mobilenet_v2"
DIM = 512


def plain_network(weights, side):
    return keras.applications.MobileNetV2(
        include_top=False,
        weights=weights,
        input_shape=(side, side, 3),
        pooling="avg",
    )


def read_photos(paths, side):
    """Photos in memory, as float32."""
    return np.stack(
        [
            ImageOps.fit(Image.open(path).convert("RGB"), (side, side))
            for path in paths
        ]
    ).astype(np.float32)


class Ours:
    """Answers about a folder of photos and the weights of MobileNetV2."""

    def __init__(self, path):
        self.path = path
        self.steps = {}

    def prepare(self, data, **options):
        """Writes the case: what both sides need, and the plain features."""
        flags = flags_of({"backbone": BACKBONE, **options})
        self.config = resolve(None, data, flags=flags)
        images = load_run_data(self.config)
        self.config = settle(self.config, images)
        self.data = stage_data(images, self.config.stages[0], self.config)
        side = self.config.data.train_shape[0]
        batch = self.config.sampling.batch_size
        rows = np.random.default_rng(0).permutation(len(images.train))[:batch]
        self.photos = read_photos(images.train.paths[rows], side)
        self.labels = images.train.labels[rows]
        self.network = plain_network(options["weights"], side)
        features = self.network(self.photos / 127.5 - 1, training=False)
        weights = self.network.get_weights()
        np.savez(
            self.path,
            *weights,
            weights=len(weights),
            features=features,
            images=self.photos,
            labels=self.labels,
            batch=batch,
            seed=self.config.seed,
            steps=(UNTIMED_STEPS, TIMED_STEPS),
            train_side=side,
            test_side=self.config.data.image_shape[0],
            train_paths=images.train.paths,
            train_labels=images.train.labels,
            test_paths=images.test.paths,
            test_labels=images.test.labels,
        )
        return {"train_side": side, "batch": batch, "steps": TIMED_STEPS}

    def rate(self, source):
        """Images that are learned in a second."""
        if source not in self.steps:
            make = {"files": self._fit, "bare": self._bare_steps}[source]
            self.steps[source] = make()
        return len(self.photos) / self.steps[source]()

    def _fit(self):
        """The trainer as `fit` trains it, from files; seconds of a step."""
        models = build_models(self.config, self.data.fit.num_classes)
        phase = self.config.stages[0].phases[0]
        steps = len(make_sampler(self.data.fit, self.config)(0))
        compile_for(models.trainer, phase, self.config, 1, steps)
        batches = train_batches(
            self.data.fit, self.config, first_epoch=0, steps=steps
        )

        def seconds():
            whole = UNTIMED_STEPS + TIMED_STEPS
            times = step_times(models.trainer, batches, whole)
            return (times[-1] - times[UNTIMED_STEPS]) / TIMED_STEPS

        return seconds

    def _bare_steps(self):
        """A classifier on photos in memory; seconds of a step."""
        for layer in self.network.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.trainable = False
        classes = keras.layers.Dense(self.data.fit.num_classes)
        model = keras.Sequential(
            [self.network, keras.layers.Dense(DIM), classes]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(1e-4)
        optimizer.build(model.trainable_variables)
        photos = tf.constant(self.photos / 127.5 - 1)
        labels = tf.constant(self.labels % self.data.fit.num_classes)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                value = loss(labels, model(photos, training=True))
            variables = model.trainable_variables
            gradients = tape.gradient(value, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return value

        def seconds():
            for _ in range(UNTIMED_STEPS):
                step().numpy()
            started = time.perf_counter()
            for _ in range(TIMED_STEPS):
                step().numpy()
            return (time.perf_counter() - started) / TIMED_STEPS

        return seconds

    def fit(self, data, **options):
        """Trains as a user does, and returns the test metrics."""
        return keras_dml.fit(data, backbone=BACKBONE, **options).metrics

    def evaluate(self, embeddings):
        """Metrics of the peer's embeddings of the same test images."""
        labels = np.load(self.path)["test_labels"]
        measured = keras_dml.evaluation.evaluate_retrieval(
            np.load(embeddings), labels
        )
        return measured.metrics


if __name__ == "__main__":
    answer(Ours(sys.argv[1]))
