"""Finishes a run: saves it, measures it, exports it and describes it."""

import platform
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import sklearn
import tensorflow as tf

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data import readers
from keras_dml.evaluation import RetrievalResult
from keras_dml.files import replacing
from keras_dml.models import load_embedder, synchronize_batch_norm
from keras_dml.run.batches import make_sampler
from keras_dml.run.conclusion import LAST_EPOCH
from keras_dml.run.data import RunData, stage_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.groups import measure_groups
from keras_dml.run.measure import (
    BASELINES,
    embed,
    evaluate,
    gains,
    worse_classes,
    write_per_query,
)
from keras_dml.run.prefixes import measure_prefixes
from keras_dml.run.recorder import RunState
from keras_dml.run.refit import is_refit
from keras_dml.run.request import Request
from keras_dml.run.trained_run import TrainedRun
from keras_dml.version import __version__

# Measured before the first step.
BEFORE_TRAINING = (*BASELINES, "before")
# What only a run that left classes out can say.
RESULTS = (
    *(*BEFORE_TRAINING, "after", "gains", "worse_classes"),
    *("groups", "prefixes", "seen", "thresholds", "refit"),
    *("split", "test_classes", "num_queries", "num_references"),
    *("num_lone_queries", "selected_by", "validation", "validated_on"),
    "oracle",
)


def finish(
    embedder: keras.Model,
    config: RunConfig,
    data: RunData,
    state: RunState,
    folder: RunFolder,
    request: Request,
) -> dict[str, Any] | None:
    """Saves, measures and exports, and writes `metrics.json` last.

    Args:
        embedder: What was trained, with the strategy's variables.
        config: The settled configuration.
        data: The images of the run.
        state: The final state.
        folder: The run folder.
        request: What the caller of `fit` asks for.

    Returns:
        The metrics, or `None` on all workers except the chief.
    """
    if distribute.is_chief():
        synchronize_batch_norm(embedder, False)
        with replacing(folder.embedder) as temporary:
            embedder.save(temporary)
        # Users get the file, so it is measured; it also has no strategy.
        embedder = load_embedder(folder.embedder)
    logger.info(
        "Embedding what a search looks through ..."
        if config.data.all_classes
        else "Measuring the result on the test images ..."
    )
    with request.timing.part("test"):
        embeddings = embed(embedder, data.test, config)
        after = evaluate(embeddings, data.test, config)
    if not distribute.is_chief():
        return None
    metrics = run_metrics(config, data, state, after)
    metrics["dim"] = embedder.output_shape[-1]
    validated = stage_data(data, config.stages[-1], config)
    metrics["validated_on"] = validated.held_out
    metrics["refit"] = is_refit(config, state)
    metrics["gains"] = gains(after, data.test, folder)
    metrics["worse_classes"] = worse_classes(after, data.test, folder)
    metrics["groups"] = measure_groups(embeddings, data.test, config)
    metrics["prefixes"] = measure_prefixes(
        embedder, embeddings, data.test, config
    )
    if request.measured is not None:
        metrics = with_results_of(request.measured, metrics)
    write_per_query(folder.per_query, data.test, after)
    run = TrainedRun.just_trained(folder.path, config, metrics)
    run.embedder = embedder
    metrics["weights_hash"] = run.weights_hash
    run.keep_test(embeddings, data.test)
    if request.export is not None:
        try:
            with request.timing.part("export"):
                request.export(embedder, data, config, metrics, folder)
        except Exception:
            # Training and measuring took longer, and do not depend on it.
            folder.write_metrics(metrics)
            logger.warning(
                "The run is trained and measured, and its export failed: "
                "`keras-dml export %s` makes it again, and `keras-dml report "
                "%s` the page.",
                folder.path,
                folder.path,
            )
            raise
    metrics["seconds"] = request.timing.rounded()
    logger.debug("Seconds by part: %s.", metrics["seconds"])
    folder.write_metrics(metrics)
    return metrics


def with_results_of(
    measured: Mapping[str, Any], metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the metrics of a final training, which cannot measure itself.

    Args:
        measured: The metrics of the measured run.
        metrics: Those of the final training.
    """
    # Its own choice has no values: nothing was left to choose on.
    own = {**metrics["interpolation"]}
    own.pop("values", None)
    return {
        **metrics,
        **{key: measured[key] for key in RESULTS if key in measured},
        "interpolation": {**measured.get("interpolation", {}), **own},
        "final": True,
    }


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
        "oracle": config.data.validation == "test" and bool(state.best_metrics),
        "several_labels": data.test.has_label_sets,
        "partial": data.partial,
        "seen": data.seen,
        "images": state.images,
        "selected_by": _selected_by(config, state),
        "validation": _validated(config, state),
        "pretrained_features": (
            "raw pixels"
            if config.model.weights == "none"
            else "pretrained backbone"
        ),
        # Runs that version 0.1 began have not measured it.
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


def _validated(config: RunConfig, state: RunState) -> dict[str, float]:
    """Returns the validation metrics of the epoch whose weights are taken."""
    if config.evaluation.select == "best" or not state.best_metrics:
        return state.best_metrics
    prefix = "val_"
    last = next(
        row
        for row in reversed(state.history)
        if prefix + config.evaluation.monitor in row
    )
    return {
        name.removeprefix(prefix): value
        for name, value in last.items()
        if name.startswith(prefix)
    }


def _selected_by(config: RunConfig, state: RunState) -> str:
    # A refit, where nothing validates, keeps what was validated before it.
    if not state.best_metrics or config.evaluation.select == "last":
        return LAST_EPOCH
    chooser = "test" if config.data.validation == "test" else "validation"
    return f"{chooser} {config.evaluation.monitor}"
