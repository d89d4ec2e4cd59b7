"""Exports a run's embedder, compared on some of its test images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import format_table, logger
from keras_dml.data.manifest import Manifest
from keras_dml.export import export_embedder
from keras_dml.run.data import evaluation_batches

COMPARED_IMAGES = 500


def export_compared(
    embedder: keras.Model,
    test: Manifest,
    config: RunConfig,
    metrics: Mapping[str, Any],
    formats: Sequence[str],
    output: Path,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Exports an embedder and logs how each artefact compares with it.

    Args:
        embedder: The trained embedder.
        test: Test images; the first classes of about 500 images are compared.
        config: The settled configuration.
        metrics: The run's results, for the manifests of the artefacts.
        formats: Any of `saved_model` and `litert`.
        output: Folder of the artefacts.
        force: Whether to replace folders that are not exports.

    Returns:
        One row per artefact, the embedder's own first.
    """
    compared = _first_classes(test)
    batches = evaluation_batches(compared, config)
    rows = export_embedder(
        embedder,
        formats,
        output,
        np.concatenate([inputs["image"] for inputs, _ in batches]),
        compared.labels,
        resize=config.augmentation.resize,
        squash=config.augmentation.squash,
        metadata={
            key: metrics[key]
            for key in ("dataset", "recipe", "backbone", "seed", "after")
        },
        force=force,
    )
    cells = [list(rows[0]), *([_cell(v) for v in row.values()] for row in rows)]
    logger.info(
        "Exported to %s, compared on %d test images:\n%s",
        output,
        len(compared),
        format_table(cells),
    )
    return rows


def _first_classes(manifest: Manifest) -> Manifest:
    """Whole classes, so that images keep their positives."""
    counts = np.cumsum(np.bincount(manifest.labels))
    last = min(np.searchsorted(counts, COMPARED_IMAGES), len(counts) - 1)
    return manifest.select(manifest.labels <= last)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
