"""Reads, checks, splits and batches the images of a run."""

import dataclasses
import os

import numpy as np

from keras_dml.config import RunConfig, StageConfig
from keras_dml.console import progress_bar
from keras_dml.data import readers, splits, verification
from keras_dml.data.class_folds import fold_classes
from keras_dml.data.image_list import list_images
from keras_dml.data.made_classes import each_a_class, with_quarter_turns
from keras_dml.data.manifest import Manifest
from keras_dml.data.triplets import check_triplets
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import has_label
from keras_dml.wording import source_title

# The classes that validate may take this share of images with several labels.
MOST_HELD_OUT = 0.5
# A class gives two of so many images to validation, and trains on the others.
_LEAST_IMAGES = 5


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
    manifest = read_images(config)
    with progress_bar() as progress:
        task = progress.add_task("checking images", total=None, note="")
        good = verification.drop_bad(
            manifest,
            progress=lambda done, total: progress.update(
                task, completed=done, total=total
            ),
        )
    return split_data(good, config, skipped=len(manifest) - len(good))


def read_images(config: RunConfig) -> Manifest:
    """Lists the images of the source; none is decoded.

    Raises:
        UsageError: If the source, or a list of triplets of it, does not read.
    """
    settings, triplets = config.data, config.sampling.triplets
    manifest = readers.read(
        settings.source, settings.data_dir, settings.allow_partial
    )
    if triplets is not None and not manifest.partial:
        check_triplets(triplets, manifest.ids)
    return manifest


def list_gallery(config: RunConfig) -> Manifest:
    """Lists all images of a source, which need no classes.

    Images of a folder or a CSV file without classes are of one, called like
    the source.

    Raises:
        UsageError: If the source does not read, or has no image.
    """
    source = config.data.source
    if readers.is_named(source) or not os.path.exists(source):
        return read_images(config)
    images = list_images(source)
    labels = images.labels
    if labels is not None and len({*labels}) > 1:
        return read_images(config)
    return Manifest(
        name=source_title(source),
        labels=np.zeros(len(images), np.int64),
        class_names=[labels[0] if labels else source_title(source)],
        ids=images.ids,
        paths=[images.path(row) for row in range(len(images))],
    )


def stage_data(
    data: RunData, stage: StageConfig, config: RunConfig
) -> StageData:
    """Splits the images of a stage into training and validation.

    With `sampling.kind: views` the training images have no labels but their
    own number.
    """
    parts = _split_stage(data, stage, config)
    fit = parts.fit
    if config.sampling.kind == "views":
        fit = each_a_class(fit)
    if config.data.quarter_turns and fit.teacher is None:
        fit = with_quarter_turns(fit)
    return dataclasses.replace(parts, fit=fit)


def _split_stage(
    data: RunData, stage: StageConfig, config: RunConfig
) -> StageData:
    train, held_out = data.train, "classes"
    if stage.classes == "first_half":
        fits = splits.first_half(train.labels)
    elif stage.classes == "all" or config.data.validation == "none":
        return StageData(train, None)
    elif config.data.validation == "test":
        return StageData(train, data.test, "test")
    else:
        fits = ~has_label(train.labels, _held_out(train.labels, config))
        if train.has_label_sets and fits.mean() < 1 - MOST_HELD_OUT:
            fits = np.ones(len(train), bool)
        share = config.data.validation_images
        if fits.all() and share is not None:
            most = config.data.max_validation_images
            share = min(share, (most or len(train)) / len(train))
            fits = _without_some_images(train, share, config.seed)
            held_out = "images"
    if fits.all():
        return StageData(train, None)
    fit, validation = train.select(fits), train.select(~fits)
    if held_out == "classes":
        validation = validation.without_classes_of(fit)
        most = config.data.max_validation_images
        if most is not None:
            some = splits.spread_images(validation.labels, most)
            validation = validation.select(some)
    return StageData(fit.relabeled(), validation.relabeled(), held_out)


def _held_out(labels: np.ndarray, config: RunConfig) -> np.ndarray:
    """Returns the training classes that validate, or none if too few."""
    settings = config.data
    if settings.folds is None:
        return splits.hold_out_classes(
            labels,
            settings.validation_fraction,
            config.seed,
            settings.validation_from,
            settings.max_validation_images,
        )
    assert settings.fold is not None
    return fold_classes(
        labels, settings.folds, settings.fold, settings.fold_split, config.seed
    )


def _without_some_images(
    train: Manifest, share: float, seed: int
) -> np.ndarray:
    """Marks the images that train if a share of each class validates.

    Retrieval needs two images of a class: a class of five or more gives two,
    a smaller one none. All images train unless two classes give some.
    """
    fits = splits.within_classes(train.labels, 1 - share, seed) == "train"
    sets, generator = train.label_sets, np.random.default_rng(seed)
    for label in range(train.num_classes):
        rows = generator.permutation(sets.owners[sets.values == label])
        held_out = np.count_nonzero(~fits[rows])
        if len(rows) < _LEAST_IMAGES:
            fits[rows] = True
        elif held_out < 2:
            fits[rows[fits[rows]][: 2 - held_out]] = False
    sets = train.select(~fits).label_sets
    counts = np.bincount(sets.values, minlength=train.num_classes)
    if np.count_nonzero(counts > 1) < 2:
        fits[:] = True
    return fits


def split_data(
    manifest: Manifest, config: RunConfig, skipped: int = 0
) -> RunData:
    """Splits a data set into training and test images.

    Raises:
        UsageError: If classes are chosen where all of them are seen.
    """
    settings = config.data
    chosen = ("train_fraction", "train_classes", "test_classes")
    given = [name for name in chosen if getattr(settings, name) is not None]
    if manifest.seen and given:
        raise UsageError(
            f"`data.{given[0]}` chooses classes, but test classes of "
            f"{manifest.name} are seen in training. Leave "
            f"`data.{given[0]}` out."
        )
    if given:
        # A class may have lost all of its images.
        present = manifest.relabeled()
        split = splits.class_disjoint(
            present.labels,
            settings.train_fraction,
            settings.train_classes,
            settings.test_classes,
            present.class_names,
        )
        # The published roles belong to the published test classes.
        manifest = dataclasses.replace(manifest, split=split, role=None)
    if settings.max_classes is not None:
        manifest = _with_some_classes(manifest, settings.max_classes)
    train = manifest.part("train")
    if settings.all_classes:
        manifest = dataclasses.replace(manifest, seen=True)
        # What is in no split was left out on purpose.
        everything = np.where(manifest.split == "", "", "train")
        train = dataclasses.replace(manifest, split=everything).part("train")
    return RunData(
        train=train,
        test=manifest.part("test"),
        seen=manifest.seen,
        partial=manifest.partial,
        skipped=skipped,
    )


def _with_some_classes(manifest: Manifest, most: int) -> Manifest:
    """Keeps images of some classes; of several labels, those of the classes."""
    labels, split = manifest.labels, manifest.split
    if not manifest.has_label_sets:
        return manifest.select(splits.some_classes(labels, split, most))
    if not manifest.seen:
        # A label that trains is no test class.
        trained = labels[split == "train"].any(axis=0)
        labels = labels & ~((split == "test")[:, None] & trained)
    kept = np.zeros_like(labels)
    for name, chosen in splits.spread_classes(labels, split, most).items():
        kept[np.ix_(split == name, chosen)] = True
    labels = labels & kept
    some = dataclasses.replace(manifest, labels=labels)
    return some.select(labels.any(axis=1))
