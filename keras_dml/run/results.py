"""What a run writes into `metrics.json`."""

import platform
from pathlib import Path
from typing import Any

import keras
import numpy as np
import sklearn
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.evaluation import RetrievalResult
from keras_dml.files import replacing
from keras_dml.run.data import RunData
from keras_dml.run.state import RunState
from keras_dml.version import __version__


def run_metrics(
    config: RunConfig, data: RunData, state: RunState, after: RetrievalResult
) -> dict[str, Any]:
    """The result of a run; values of metrics are in [0, 1].

    Args:
        config: The settled configuration.
        data: The images of the run.
        state: The final state, with the results before training.
        after: The result on the test images after training.
    """
    return {
        "dataset": config.data.source,
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
        "partial": data.partial,
        "seen": data.seen,
        "selected_by": _selected_by(config, state),
        "validation": state.best_metrics,
        "pretrained_features": (
            "raw pixels"
            if config.model.weights == "none"
            else "pretrained backbone"
        ),
        "pretrained": state.baselines["pretrained"],
        "before": state.baselines["before"],
        "after": after.metrics,
        "train_seconds": round(state.seconds, 1),
        "versions": {
            "keras_dml": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }


def write_per_query(
    path: Path, test: Manifest, result: RetrievalResult
) -> None:
    """Writes the metrics of every query, to compare runs query by query.

    Args:
        path: The `.npz` file; arrays `ids`, `labels` and one for each metric,
            NaN for lone queries.
        test: The test images.
        result: What was measured on them.
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
