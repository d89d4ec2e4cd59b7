"""Measures a run on its images."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger, track
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    RetrievalResult,
    class_table,
    evaluate_retrieval,
    paired_bootstrap,
)
from keras_dml.files import replacing
from keras_dml.models import forward_function
from keras_dml.npz import read_npz
from keras_dml.roles import has_gallery, query_rows, reference_rows
from keras_dml.run.batches import evaluation_batches
from keras_dml.run.folder import RunFolder

RAW_PIXELS_SIDE = 32
BASELINES = ("off_the_shelf", "pretrained")
# What no training may lower, and a class is judged by.
GUARDED = "recall@1"


def embed(
    model: keras.Model,
    manifest: Manifest,
    config: RunConfig,
    again: bool = False,
) -> np.ndarray:
    """Computes a model's outputs for all images, in their order.

    All workers must call it. Each embeds its part of the images, and receives
    the outputs of all images.

    Args:
        model: Model that maps image batches to vectors.
        manifest: The images.
        config: Configuration that defines the crop.
        again: Whether the images will be embedded again, so that large photos
            are kept in memory. Defaults to `False`.
    """
    own = manifest.select(distribute.own_rows(len(manifest)))
    batches = evaluation_batches(own, config, again=again)
    forward = forward_function(model)
    total = -(-len(own) // config.evaluation.batch_size)
    rows = [
        np.asarray(forward(inputs["image"]))
        for inputs, _ in track(batches, "embedding", total)
    ]
    empty = np.zeros((0, *model.output_shape[1:]), np.float32)
    return distribute.gather_rows(np.concatenate([empty, *rows]))


def evaluate(
    embeddings: np.ndarray, manifest: Manifest, config: RunConfig
) -> RetrievalResult:
    """Measures the retrieval of images by their embeddings.

    If the manifest has roles, queries search the gallery; otherwise every
    image is a query and all other images are its references.

    Args:
        embeddings: One row for each image.
        manifest: The images.
        config: Configuration that defines the metrics.
    """
    settings = config.evaluation
    queries = query_rows(manifest.role)
    arguments: dict[str, Any] = {}
    if has_gallery(manifest.role):
        gallery = reference_rows(manifest.role)
        arguments = {
            "reference_embeddings": embeddings[gallery],
            "reference_labels": manifest.labels[gallery],
            "reference_ids": manifest.ids[gallery],
        }
    return evaluate_retrieval(
        embeddings[queries],
        manifest.labels[queries],
        query_ids=manifest.ids[queries],
        k=tuple(settings.k),
        normalize=settings.normalize,
        clustering=settings.clustering and clustering_arguments(config),
        **arguments,
    )


def evaluate_briefly(
    embeddings: np.ndarray, manifest: Manifest, config: RunConfig
) -> RetrievalResult:
    """Measures R@1, whatever `k` is, and no clusters; else as `evaluate`.

    Args:
        embeddings: One row for each image.
        manifest: The images.
        config: Configuration that defines the metrics.
    """
    brief = config.changed(evaluation={"k": [1], "clustering": False})
    return evaluate(embeddings, manifest, brief)


def clustering_arguments(config: RunConfig) -> dict[str, Any]:
    """Returns how a run clusters, as arguments of `evaluate_clustering`."""
    return {
        "init": config.evaluation.kmeans_init,
        "num_starts": config.evaluation.kmeans_starts,
        "seed": config.seed,
    }


def raw_pixels(manifest: Manifest, config: RunConfig) -> np.ndarray:
    """Returns images as vectors of at most 32 x 32 pixels, to save memory."""
    side = min(config.data.image_size or RAW_PIXELS_SIDE, RAW_PIXELS_SIDE)
    rows = [
        tf.image.resize(inputs["image"], (side, side), antialias=True).numpy()
        for inputs, _ in evaluation_batches(manifest, config)
    ]
    pixels = np.concatenate(rows)
    return pixels.reshape(len(pixels), -1)


def gains(
    after: RetrievalResult, test: Manifest, folder: RunFolder
) -> dict[str, dict[str, dict[str, float]]]:
    """Compares the result of training with every baseline.

    Returns:
        By baseline and metric a dict of the `"gain"` and of `"low"` and
        `"high"`, its 95 % interval over resampled classes.
    """
    compared: dict[str, dict[str, dict[str, float]]] = {}
    for name in BASELINES:
        if not folder.baseline(name).is_file():
            continue
        try:
            pairs, classes = _pairs(folder.baseline(name), after, test)
            compared[name] = {
                metric: _gain(*values, classes)
                for metric, values in pairs.items()
            }
        except UsageError as error:
            logger.warning("The gain over %s is unknown: %s", name, error)
    return compared


def _gain(
    before: np.ndarray, after: np.ndarray, classes: np.ndarray
) -> dict[str, float]:
    gain = paired_bootstrap(after, before, classes)
    return {"gain": gain.difference, "low": gain.low, "high": gain.high}


def _pairs(
    path: Path, after: RetrievalResult, test: Manifest
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Pairs the queries of a baseline with the same ones of today.

    Images may have gone between the start and the end of a run.

    Returns:
        Dict of the metrics to their values before and after, query by query;
        and the labels of these queries.

    Raises:
        UsageError: If the file does not read, or no query is the same.
    """
    before = read_npz(path, ("ids",), after.per_query)
    then, rows = before.pop("ids"), query_rows(test.role)
    now = test.ids[rows]
    left = np.flatnonzero(np.isin(then, now))
    places = np.argsort(now, kind="stable")
    found = places[np.searchsorted(now[places], then[left])]
    if not len(left):
        raise UsageError(
            f"{path} must hold queries of the test images. Received: others. "
            "Restore the images, or train again."
        )
    if len(left) < max(len(then), len(now)):
        logger.warning(
            "The test images have changed since the run began: %s queries are "
            "compared, which are in both.",
            f"{len(left):,}",
        )
    # As the file has them, in float32, so that equal values stay equal.
    pairs = {
        metric: (
            values[left],
            after.per_query[metric][found].astype(values.dtype),
        )
        for metric, values in before.items()
    }
    return pairs, test.labels[rows[found]]


def worse_classes(
    after: RetrievalResult, test: Manifest, folder: RunFolder
) -> dict[str, int] | None:
    """Counts the test classes that training made worse.

    A class is worse if the mean R@1 of its queries is lower than that of what
    training has to beat, `off_the_shelf`.

    Returns:
        Dict of the numbers of `"worse"` classes and of all `"classes"` that
        have a query with a positive; `None` if R@1 was not measured.
    """
    path = folder.baseline(BASELINES[0])
    if GUARDED not in after.per_query or not path.is_file():
        return None
    try:
        pairs, classes = _pairs(path, after, test)
        if GUARDED not in pairs:
            return None
        before, values = pairs[GUARDED]
        table = class_table({"before": before, "after": values}, classes)
    except UsageError as error:
        logger.warning("How many classes are worse is unknown: %s", error)
        return None
    return {
        "worse": int(np.sum(table.means["after"] < table.means["before"])),
        "classes": int(np.sum(~np.isnan(table.means["after"]))),
    }


def write_per_query(
    path: Path, test: Manifest, result: RetrievalResult
) -> None:
    """Writes the metrics of every query, to compare runs query by query.

    Args:
        path: The `.npz` file. Its arrays are `ids`, `labels` and one for each
            metric, with NaN for lone queries.
        test: The test images.
        result: Their metrics.
    """
    queries = query_rows(test.role)
    arrays: dict[str, Any] = {
        "ids": test.ids[queries],
        "labels": test.labels[queries],
    }
    for name, values in result.per_query.items():
        arrays[name] = values.astype(np.float32)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)
