"""Batches of a run's images, for training and for evaluation."""

import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.data import pipeline, sampling
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.class_orders import groups_of_classes
from keras_dml.data.image_fit import ImageFit
from keras_dml.data.index_batches import Replicas
from keras_dml.data.manifest import Manifest
from keras_dml.data.shuffled_passes import random_batches
from keras_dml.data.triplets import read_triplets, triplet_batches
from keras_dml.data.weighted_sampling import inverse_frequency_batches
from keras_dml.errors import UsageError
from keras_dml.run.loss_terms import needs_groups

distribute.leave_accelerators()


def make_sampler(
    manifest: Manifest, config: RunConfig, similarity: np.ndarray | None = None
) -> Callable[[int], Sequence[np.ndarray]]:
    """Returns a pure function from the epoch to its batches of rows.

    Args:
        manifest: The training images.
        config: The settled configuration.
        similarity: How alike the classes are, for `sampling.kind:
            hard_classes`; without it that draws as `balanced`, which has the
            same shapes. Defaults to `None`.
    """
    settings = config.sampling
    draw: Callable[..., Iterable[np.ndarray]]
    if settings.by_class:
        groups = None
        if settings.kind == "hierarchical":
            groups = _groups(manifest, "sampling.kind", settings.kind)
        draw = functools.partial(
            sampling.balanced_batches,
            manifest.labels,
            _classes_per_batch(manifest, config),
            settings.images,
            groups=groups,
            similarity=similarity,
        )
    elif settings.triplets is not None:
        triplets = read_triplets(settings.triplets, manifest.ids)
        draw = functools.partial(triplet_batches, triplets, settings.batch_size)
    elif settings.kind == "inverse_frequency":
        draw = functools.partial(
            inverse_frequency_batches, manifest.labels, settings.batch_size
        )
    else:
        draw = functools.partial(
            random_batches,
            len(manifest),
            settings.batch_size,
            drop_remainder=settings.drop_remainder,
        )
    seed, steps = config.seed, settings.steps_per_epoch
    return lambda epoch: list(draw(seed=seed, epoch=epoch, steps=steps))


def batch_rows(manifest: Manifest, config: RunConfig) -> int:
    """Returns the number of images of a training batch."""
    settings = config.sampling
    if settings.by_class:
        return _classes_per_batch(manifest, config) * settings.images
    if settings.triplets is not None:
        return len(make_sampler(manifest, config)(0)[0])
    return min(settings.batch_size, len(manifest))


def sampling_warnings(manifest: Manifest, config: RunConfig) -> list[str]:
    """Returns warnings about balanced batches of these images."""
    settings = config.sampling
    # Of an image there are as many views as wanted.
    if not settings.by_class or settings.kind == "views":
        return []
    classes = _classes_per_batch(manifest, config)
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
            augmentation=augmentation_of(config),
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


def augmentation_of(config: RunConfig) -> Augmentation:
    """Returns the random changes, for images of the side of training."""
    settings = config.augmentation.model_dump()
    size, train_size = config.data.image_shape[0], config.data.train_shape[0]
    settings["resize"] = round((settings["resize"] or size) * train_size / size)
    return Augmentation(**settings)


def evaluation_batches(
    manifest: Manifest,
    config: RunConfig,
    batch_size: int | None = None,
    again: bool = False,
) -> tf.data.Dataset:
    """Returns all images once, in order, resized and center-cropped.

    If they are read `again` later, large photos are kept in memory.
    """
    return pipeline.evaluation_batches(
        manifest,
        batch_size=batch_size or config.evaluation.batch_size,
        image_size=config.data.image_shape[0],
        channels=config.data.image_shape[2],
        resize=config.augmentation.resize,
        squash=config.augmentation.squash,
        again=again,
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


def class_groups(manifest: Manifest, config: RunConfig) -> list[int] | None:
    """Returns the group of each class, or `None` if no loss needs it.

    Raises:
        UsageError: If a loss needs it and there are no groups.
    """
    if not needs_groups(config.loss):
        return None
    groups = _groups(manifest, "loss", config.loss[0].name)
    return groups_of_classes(manifest.label_sets, groups).tolist()


def _groups(manifest: Manifest, setting: str, value: str) -> np.ndarray:
    if manifest.group is None:
        raise UsageError(
            f"`{setting}` must be another one for classes without groups. "
            f"Received: {value!r} for `{manifest.name}`. Give the images a "
            "column `group` or a folder for each group."
        )
    return manifest.group


def _classes_per_batch(manifest: Manifest, config: RunConfig) -> int:
    """Returns the given number of classes, or what fits into a batch."""
    settings = config.sampling
    asked = settings.most_rows // settings.images
    return asked if settings.classes else min(asked, manifest.num_classes)
