"""Batches of a run's images, for training and for evaluation."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.data import pipeline, sampling
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.image_fit import ImageFit
from keras_dml.data.index_batches import Replicas
from keras_dml.data.manifest import Manifest
from keras_dml.data.weighted_sampling import inverse_frequency_batches
from keras_dml.errors import UsageError

distribute.leave_accelerators()


def make_sampler(
    manifest: Manifest, config: RunConfig
) -> Callable[[int], Sequence[np.ndarray]]:
    """Returns a pure function from the epoch to its batches of rows."""
    settings = config.sampling
    if settings.by_class:
        classes = settings.classes or _classes_per_batch(manifest, config)
        groups = _groups(manifest) if settings.kind == "hierarchical" else None

        def sampler(epoch):
            return list(
                sampling.balanced_batches(
                    manifest.labels,
                    classes,
                    settings.images,
                    seed=config.seed,
                    epoch=epoch,
                    steps=settings.steps_per_epoch,
                    groups=groups,
                )
            )

    elif settings.kind == "inverse_frequency":

        def sampler(epoch):
            return list(
                inverse_frequency_batches(
                    manifest.labels,
                    settings.batch_size,
                    seed=config.seed,
                    epoch=epoch,
                    steps=settings.steps_per_epoch,
                )
            )

    else:

        def sampler(epoch):
            return sampling.random_batches(
                len(manifest),
                settings.batch_size,
                seed=config.seed,
                epoch=epoch,
                drop_remainder=settings.drop_remainder,
                steps=settings.steps_per_epoch,
            )

    return sampler


def batch_rows(manifest: Manifest, config: RunConfig) -> int:
    """Returns the number of images of a training batch."""
    settings = config.sampling
    if not settings.by_class:
        return min(settings.batch_size, len(manifest))
    classes = settings.classes or _classes_per_batch(manifest, config)
    return classes * settings.images


def sampling_warnings(manifest: Manifest, config: RunConfig) -> list[str]:
    """Returns warnings about balanced batches of these images."""
    settings = config.sampling
    if not settings.by_class:
        return []
    classes = settings.classes or _classes_per_batch(manifest, config)
    return sampling.check(manifest.labels, classes, settings.images)


def train_batches(
    manifest: Manifest,
    config: RunConfig,
    *,
    first_epoch: int,
    steps: int,
    first_step: int = 0,
    sampler: Callable[[int], Sequence[np.ndarray]] | None = None,
) -> tf.data.Dataset:
    """Returns endless augmented batches, from a step of `first_epoch` on.

    With several workers, each reads only the images of its own replicas. The
    sampler is that of the configuration unless one is given.
    """

    def make(replicas: Replicas | None = None) -> tf.data.Dataset:
        return pipeline.train_batches(
            manifest,
            sampler or make_sampler(manifest, config),
            image_size=config.data.train_shape[0],
            channels=config.data.train_shape[2],
            seed=config.seed,
            first_epoch=first_epoch,
            first_step=first_step,
            replicas=replicas,
            steps_per_epoch=steps,
            augmentation=_augmentation(config),
        )

    if distribute.num_workers() == 1:
        return make()

    def own(context) -> tf.data.Dataset:
        total = context.num_replicas_in_sync
        count = total // context.num_input_pipelines
        first = context.input_pipeline_id * count
        # Without a declared infinite cardinality, the workers ask each other
        # before every step whether any of them has a batch left.
        return make(Replicas(first, count, total)).apply(
            tf.data.experimental.assert_cardinality(
                tf.data.INFINITE_CARDINALITY
            )
        )

    strategy = tf.distribute.get_strategy()
    return strategy.distribute_datasets_from_function(own)


def _augmentation(config: RunConfig) -> Augmentation:
    """Returns the random changes, for images of the side of training."""
    settings = config.augmentation.model_dump()
    size, train_size = config.data.image_shape[0], config.data.train_shape[0]
    settings["resize"] = round((settings["resize"] or size) * train_size / size)
    return Augmentation(**settings)


def evaluation_batches(
    manifest: Manifest, config: RunConfig, batch_size: int | None = None
) -> tf.data.Dataset:
    """Returns all images once, in order, resized and center-cropped."""
    return pipeline.evaluation_batches(
        manifest,
        batch_size=batch_size or config.evaluation.batch_size,
        image_size=config.data.image_shape[0],
        channels=config.data.image_shape[2],
        resize=config.augmentation.resize,
        squash=config.augmentation.squash,
    )


def whole_batches(manifest: Manifest, config: RunConfig) -> tf.data.Dataset:
    """Returns endless batches of center crops, all of the same size.

    The statistics of a smaller last batch would be noisy.
    """
    size = config.evaluation.batch_size
    batches = evaluation_batches(manifest, config).repeat()
    return batches.rebatch(size, drop_remainder=True)


def image_fit(config: RunConfig) -> ImageFit:
    """Returns the `ImageFit` of the run's evaluation."""
    size, _, channels = config.data.image_shape
    augmentation = config.augmentation
    return ImageFit(size, channels, augmentation.resize, augmentation.squash)


def _groups(manifest: Manifest) -> np.ndarray:
    if manifest.group is None:
        raise UsageError(
            "`sampling.kind` must be another one for classes without groups. "
            f"Received: 'hierarchical' for `{manifest.name}`. Give the images "
            "a column `group` or a folder for each group, or take 'balanced'."
        )
    return manifest.group


def _classes_per_batch(manifest: Manifest, config: RunConfig) -> int:
    """Returns the number of classes that fit into a batch."""
    wanted = max(1, config.sampling.batch_size // config.sampling.images)
    return min(wanted, manifest.num_classes)
