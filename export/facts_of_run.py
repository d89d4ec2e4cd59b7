"""What a run brings to its export: settings, results and real images."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.export.options import ExportOptions, References
from keras_dml.run.batches import evaluation_batches
from keras_dml.run.data import RunData
from keras_dml.run.run_threshold import RunThreshold
from keras_dml.run.trained_run import TrainedRun
from keras_dml.wording import without_folders

CALIBRATION_IMAGES = 200


def with_facts_of_run(
    options: ExportOptions,
    data: RunData,
    run: TrainedRun,
    threshold: RunThreshold | None,
) -> ExportOptions:
    """Fills the options that the caller left open with those of the run.

    Args:
        options: `ExportOptions`.
        data: The images of the run, of which some calibrate int8.
        run: The run.
        threshold: `RunThreshold` of a match, if there is one.
    """
    config = run.config
    keys = ("dataset", "recipe", "backbone", "seed", "after")
    facts = {key: run.metrics[key] for key in keys}
    for key in ("recipe", "backbone"):
        facts[key] = without_folders(facts[key])
    # Then the results are those of the measured run.
    facts["final"] = run.metrics.get("final", False)
    facts["prefixes"] = run.metrics.get("prefixes", {})
    facts["threshold"] = threshold and threshold.facts()
    facts["labels"] = list(data.train.class_names)
    found: dict[str, Any] = {"metadata": {**facts, **options.metadata}}
    if options.references is True:
        found["references"] = _references(data.test, config)
    if options.calibration is None:
        found["calibration"] = _calibration(data.train, config)
    for name in ("resize", "squash"):
        if getattr(options, name) is None:
            found[name] = getattr(config.augmentation, name)
    return dataclasses.replace(options, **found)


def images_to_compare(
    test: Manifest, config: RunConfig, count: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns images and labels of several classes, about `count` rows.

    A class has at least two images, so that they find each other. It adds at
    most a tenth of the rows, or its part of fewer than ten classes, so that
    there are others to confuse its images with.

    Args:
        test: The test images of the run.
        config: Its settled configuration.
        count: About how many.

    Returns:
        Tuple of float32 images `(n, height, width, channels)` and their
        labels, `None` if no class has two images.
    """
    sets = test.label_sets
    several = np.flatnonzero(np.bincount(sets.values) > 1)
    if not len(several):
        some = test.select(np.arange(min(len(test), count)))
        return np.concatenate(list(_images(some, config))), None
    most = max(2, count // min(len(several), 10))
    rows = np.zeros(len(test), bool)
    for one in several:
        own = sets.owners[sets.values == one]
        rows[own[~rows[own]][:most]] = True
        if np.count_nonzero(rows) >= count:
            break
    chosen = test.select(rows)
    return np.concatenate(list(_images(chosen, config))), chosen.labels


def _images(manifest: Manifest, config: RunConfig) -> tf.data.Dataset:
    """Returns batches of images without labels, for repeated iteration."""
    batches = evaluation_batches(manifest, config)
    return batches.map(lambda inputs, _: inputs["image"])


def _calibration(train: Manifest, config: RunConfig) -> Iterator[np.ndarray]:
    """Yields some training images, in uint8 as a client gives them."""
    generator = np.random.default_rng(config.seed)
    rows = generator.permutation(len(train))[:CALIBRATION_IMAGES]
    for batch in _images(train.select(rows), config):
        yield from np.rint(batch).astype("uint8")


def _references(test: Manifest, config: RunConfig) -> References:
    """Returns the test images that are not queries."""
    rows = test.select(test.role != "query")
    if not len(rows):
        raise UsageError(
            "`references` must have test images that are not queries. "
            f"Received: {len(test):,} test images, all of them queries. Leave "
            "it out, or pass `References` of other images."
        )
    return References(
        _images(rows, config),
        labels=rows.names.tolist(),
        ids=rows.ids.tolist(),
    )
