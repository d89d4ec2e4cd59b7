"""Measures a run on its images, and describes it for `metrics.json`."""

import platform
from pathlib import Path
from typing import Any

import keras
import numpy as np
import sklearn
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger, track
from keras_dml.data import readers
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    RetrievalResult,
    evaluate_retrieval,
    paired_bootstrap,
)
from keras_dml.files import replacing
from keras_dml.models import forward_function
from keras_dml.npz import read_npz
from keras_dml.run.batches import evaluation_batches, make_sampler
from keras_dml.run.data import RunData, stage_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.recorder import RunState
from keras_dml.version import __version__

RAW_PIXELS_SIDE = 32
BASELINES = ("off_the_shelf", "pretrained")


def measure(
    model: keras.Model, manifest: Manifest, config: RunConfig
) -> RetrievalResult:
    """Measures the retrieval of images by the outputs of a model.

    If the manifest has roles, queries search the gallery; otherwise every
    image is a query and all other images are its references.

    Args:
        model: Model that maps image batches to vectors.
        manifest: The images.
        config: Configuration that defines the crop and the metrics.
    """
    return evaluate(embed(model, manifest, config), manifest, config)


def embed(
    model: keras.Model, manifest: Manifest, config: RunConfig
) -> np.ndarray:
    """Computes a model's outputs for all images, in their order.

    All workers must call it. Each embeds its part of the images, and receives
    the outputs of all images.
    """
    own = manifest.select(distribute.own_rows(len(manifest)))
    batches = evaluation_batches(own, config)
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
    """Measures embeddings whose rows are the images of a manifest."""
    settings = config.evaluation
    queries = np.flatnonzero(manifest.role != "gallery")
    gallery = np.flatnonzero(manifest.role == "gallery")
    arguments: dict[str, Any] = {}
    if len(gallery):
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


def run_metrics(
    config: RunConfig, data: RunData, state: RunState, after: RetrievalResult
) -> dict[str, Any]:
    """Returns the results of a run. Values of metrics are in [0, 1].

    Args:
        config: The settled configuration.
        data: The images of the run.
        state: The final state, with the results before training.
        after: The result on the test images after training.
    """
    return {
        "dataset": readers.source_name(config.data.source),
        "recipe": config.recipe,
        "section": config.section,
        "backbone": config.model.backbone,
        "seed": config.seed,
        "split": "images" if data.seen else "classes",
        "train_classes": data.train.num_classes,
        "test_classes": data.test.num_classes,
        "skipped_images": data.skipped,
        "num_queries": after.num_queries,
        "num_references": after.num_references,
        "num_lone_queries": after.num_lone,
        "index": "exact",
        "oracle": config.data.validation == "test" and state.best is not None,
        "several_labels": data.test.has_label_sets,
        "partial": data.partial,
        "seen": data.seen,
        "selected_by": _selected_by(config, state),
        "validation": state.best_metrics,
        "pretrained_features": (
            "raw pixels"
            if config.model.weights == "none"
            else "pretrained backbone"
        ),
        "off_the_shelf": state.baselines.get(
            "off_the_shelf", state.baselines["pretrained"]
        ),
        "pretrained": state.baselines["pretrained"],
        "before": state.baselines["before"],
        "after": after.metrics,
        "image_size": config.data.image_size,
        "natural_size": config.data.natural_size,
        "shrinkage": state.shrinkage,
        "interpolation": state.interpolation,
        "length": trained_length(config, data, state),
        "train_seconds": round(state.seconds, 1),
        "versions": {
            "keras_dml": __version__,
            "backend": distribute.backend_version(),
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }


def trained_length(
    config: RunConfig, data: RunData, state: RunState
) -> dict[str, float]:
    """Returns how long the last stage trained, whose weights are kept.

    Args:
        config: The settled configuration.
        data: The images of the run.
        state: The final state, with the finished epochs.

    Returns:
        Dict of `"steps"` and of `"passes"`, how often the stage saw each of
        its training images on average.
    """
    stage = config.trainings[state.stage]
    fit = stage_data(data, stage, config).fit
    epochs = sum(row["stage"] == stage.name for row in state.history)
    batches = make_sampler(fit, config)(0)
    images = epochs * sum(len(rows) for rows in batches)
    return {"steps": epochs * len(batches), "passes": images / len(fit)}


def gains(
    after: RetrievalResult, test: Manifest, folder: RunFolder
) -> dict[str, dict[str, dict[str, float]]]:
    """Compares the result of training with every baseline.

    Returns:
        By baseline and metric a dict of the `"gain"` and of `"low"` and
        `"high"`, its 95 % interval over resampled classes.
    """
    classes = test.labels[test.role != "gallery"]
    compared: dict[str, dict[str, dict[str, float]]] = {}
    for name in BASELINES:
        if not folder.baseline(name).is_file():
            continue
        try:
            before = read_npz(folder.baseline(name), (), after.per_query)
            compared[name] = {
                metric: _gain(after.per_query[metric], values, classes)
                for metric, values in before.items()
            }
        except UsageError as error:
            logger.warning("The gain over %s is unknown: %s", name, error)
    return compared


def _gain(
    after: np.ndarray, before: np.ndarray, classes: np.ndarray
) -> dict[str, float]:
    gain = paired_bootstrap(after, before, classes)
    return {"gain": gain.difference, "low": gain.low, "high": gain.high}


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
    queries = test.role != "gallery"
    arrays: dict[str, Any] = {
        "ids": test.ids[queries],
        "labels": test.labels[queries],
    }
    for name, values in result.per_query.items():
        arrays[name] = values.astype(np.float32)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def _selected_by(config: RunConfig, state: RunState) -> str:
    if state.best is None or config.evaluation.select == "last":
        return "last epoch"
    chooser = "test" if config.data.validation == "test" else "validation"
    return f"{chooser} {config.evaluation.monitor}"
