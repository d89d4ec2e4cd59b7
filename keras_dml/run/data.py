"""Reads, checks, splits and batches the images of a run."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig, StageConfig
from keras_dml.console import progress_bar
from keras_dml.data import pipeline, readers, sampling, splits, verification
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.class_folds import fold_classes
from keras_dml.data.image_fit import ImageFit
from keras_dml.data.index_batches import Replicas
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True)
class RunData:
    """Holds the training images and the test images of a run.

    Attributes:
        train: Training images with labels from 0.
        test: Images of the test classes; if `seen`, test images of the
            training classes.
        seen: Whether the test classes are also training classes.
        partial: Whether the data set is incomplete.
        skipped: Number of images left out because they do not decode.
    """

    train: Manifest
    test: Manifest
    seen: bool
    partial: bool
    skipped: int


@dataclasses.dataclass(frozen=True)
class StageData:
    """Holds the training and validation images of one stage.

    Attributes:
        fit: The images that train.
        validation: The images that choose the weights, or `None`.
        held_out: What `validation` holds: `"classes"` that do not train,
            other `"images"` of those that do, the `"test"` images, or
            `"nothing"`.
    """

    fit: Manifest
    validation: Manifest | None
    held_out: str = "nothing"


def load_run_data(config: RunConfig) -> RunData:
    """Reads the source, leaves out undecodable files, and splits the rest."""
    manifest = readers.read(
        config.data.source,
        data_dir=config.data.data_dir,
        allow_partial=config.data.allow_partial,
    )
    with progress_bar() as progress:
        task = progress.add_task("checking images", total=None, note="")
        good = verification.drop_bad(
            manifest,
            progress=lambda done, total: progress.update(
                task, completed=done, total=total
            ),
        )
    return split_data(good, config, skipped=len(manifest) - len(good))


def stage_data(
    data: RunData, stage: StageConfig, config: RunConfig
) -> StageData:
    """Splits the images of a stage into training and validation."""
    train, held_out = data.train, "classes"
    if stage.classes == "first_half":
        fits = splits.first_half(train.labels)
    elif stage.classes == "all" or config.data.validation == "none":
        return StageData(train, None)
    elif config.data.validation == "test":
        return StageData(train, data.test, "test")
    else:
        fits = ~np.isin(train.labels, _held_out(train.labels, config))
        share = config.data.validation_images
        if fits.all() and share is not None:
            fits = _without_some_images(train, share, config.seed)
            held_out = "images"
    if fits.all():
        return StageData(train, None)
    return StageData(
        train.select(fits).relabeled(),
        train.select(~fits).relabeled(),
        held_out,
    )


def make_sampler(
    manifest: Manifest, config: RunConfig
) -> Callable[[int], Sequence[np.ndarray]]:
    """Returns a pure function from the epoch to its batches of rows."""
    settings = config.sampling
    if settings.kind == "balanced":
        classes = settings.classes or _classes_per_batch(manifest, config)

        def sampler(epoch):
            return list(
                sampling.balanced_batches(
                    manifest.labels,
                    classes,
                    settings.images,
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
    if settings.kind == "random":
        return min(settings.batch_size, len(manifest))
    classes = settings.classes or _classes_per_batch(manifest, config)
    return classes * settings.images


def sampling_warnings(manifest: Manifest, config: RunConfig) -> list[str]:
    """Returns warnings about balanced batches of these images."""
    settings = config.sampling
    if settings.kind != "balanced":
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
) -> tf.data.Dataset:
    """Returns endless augmented batches, from a step of `first_epoch` on.

    With several workers, each reads only the images of its own replicas.
    """

    def make(replicas: Replicas | None = None) -> tf.data.Dataset:
        return pipeline.train_batches(
            manifest,
            make_sampler(manifest, config),
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


def _held_out(labels: np.ndarray, config: RunConfig) -> np.ndarray:
    """Returns the training classes that validate, or none if too few."""
    settings = config.data
    if settings.folds is None:
        return splits.hold_out_classes(
            labels,
            settings.validation_fraction,
            config.seed,
            settings.validation_from,
        )
    assert settings.fold is not None
    return fold_classes(
        labels,
        settings.folds,
        settings.fold,
        settings.fold_split,
        config.seed,
    )


def _without_some_images(
    train: Manifest, share: float, seed: int
) -> np.ndarray:
    """Marks the images that train if a share of each class validates."""
    fits = splits.within_classes(train.labels, 1 - share, seed) == "train"
    counts = np.bincount(train.labels[~fits], minlength=train.num_classes)
    # Retrieval needs two images of a class.
    return fits if counts.min() > 1 else np.ones(len(train), bool)


def _classes_per_batch(manifest: Manifest, config: RunConfig) -> int:
    """Returns the number of classes that fit into a batch."""
    wanted = max(1, config.sampling.batch_size // config.sampling.images)
    return min(wanted, manifest.num_classes)


def split_data(
    manifest: Manifest, config: RunConfig, skipped: int = 0
) -> RunData:
    """Splits a data set into training and test images.

    Raises:
        UsageError: If classes are chosen where all of them are seen.
    """
    settings = config.data
    chosen = {
        "data.train_classes": settings.train_classes,
        "data.test_classes": settings.test_classes,
    }
    given = [name for name, classes in chosen.items() if classes is not None]
    if manifest.seen and given:
        raise UsageError(
            f"`{given[0]}` chooses classes, but all classes of "
            f"{manifest.name} are seen in training. Leave `{given[0]}` out."
        )
    if given or (settings.train_fraction is not None and not manifest.seen):
        manifest = dataclasses.replace(
            manifest,
            split=splits.class_disjoint(
                manifest.labels,
                settings.train_fraction,
                settings.train_classes,
                settings.test_classes,
                manifest.class_names,
            ),
        )
    if settings.max_classes is not None:
        manifest = manifest.select(
            splits.some_classes(
                manifest.labels, manifest.split, settings.max_classes
            )
        )
    train = manifest.part("train")
    if settings.all_classes:
        everything = np.full(len(manifest), "train")
        train = dataclasses.replace(manifest, split=everything).part("train")
    return RunData(
        train=train,
        test=manifest.part("test"),
        seen=manifest.seen or settings.all_classes,
        partial=manifest.partial,
        skipped=skipped,
    )
