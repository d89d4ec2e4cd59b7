"""Measures the concatenated embeddings of all folds."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.comparison.records import RunRecord, experiment_of, grouped
from keras_dml.errors import UsageError
from keras_dml.files import check_fields, load_json, write_json
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import evaluate, write_per_query
from keras_dml.run.results import Means
from keras_dml.run.trained_run import TrainedRun


def concatenated(records: Sequence[RunRecord], folder: Path) -> list[RunRecord]:
    """Measures the folds of each arm and seed as one embedder.

    Concatenates the embeddings of the folds, each of length 1:
    `f(x) = [f_1(x) / |f_1(x)|, ..., f_K(x) / |f_K(x)|]`. The comparison
    normalizes the whole to length 1 again.

    A result is kept until one of its folds is trained again.

    Args:
        records: The runs of a plan under cross-validation. Arms and seeds
            with an unfinished fold are left out.
        folder: The folder that holds one subfolder for each result.

    Returns:
        One record for each arm and seed; its `dim` is the sum over the folds,
        and `concatenated` their number.

    Raises:
        UsageError: If folds embedded different images, or a result is damaged.

    Reference:
        Musgrave et al., "A Metric Learning Reality Check", 2020, section 3.2.
    """
    groups = grouped(
        records, lambda run: (experiment_of(run), run.arm, run.seed)
    )
    return [
        _measured(folds, folder)
        for folds in groups.values()
        if all(fold.status == "done" for fold in folds)
    ]


def _measured(folds: list[RunRecord], folder: Path) -> RunRecord:
    first = folds[0]
    start, _, end = first.run.rpartition("-fold")
    # `own_name` may have added a hash to the number of the fold.
    name = f"{start}{end.lstrip('0123456789')}-concatenated"
    target = folder / name
    result = target / "metrics.json"
    if not _is_newer(result, folds):
        target.mkdir(parents=True, exist_ok=True)
        _measure(folds, target, result)
    return dataclasses.replace(
        first,
        run=name,
        dim=sum(fold.dim for fold in folds),
        fold=None,
        concatenated=len(folds),
        oracle=any(fold.oracle for fold in folds),
        pretrained={},
        before={},
        after=_read(result),
        validation={},
        train_seconds=sum(fold.train_seconds for fold in folds),
        folder=target,
    )


def _read(result: Path) -> dict[str, float]:
    what = "the metrics of concatenated embeddings"
    return check_fields(load_json(result), Means, result, what)


def _is_newer(result: Path, folds: list[RunRecord]) -> bool:
    """Returns whether a result exists and no fold was trained after it."""
    parts = [RunFolder(fold.folder).metrics for fold in folds if fold.folder]
    return result.is_file() and all(
        part.stat().st_mtime_ns <= result.stat().st_mtime_ns for part in parts
    )


def _measure(folds: list[RunRecord], target: Path, result: Path) -> None:
    runs = [TrainedRun(fold.folder) for fold in folds if fold.folder]
    parts = [part.embeddings for run in runs if (part := run.part("test"))]
    # Has labels, ids and roles like the manifest of the test images.
    test: Any = parts[0]
    for fold, embedded in zip(folds, parts, strict=True):
        if not np.array_equal(embedded.ids, test.ids):
            raise UsageError(
                f"The folds of {target.name} must have embedded the same test "
                f"images. Received: {fold.run} with others than "
                f"{folds[0].run}. Put the images back, or train the folds "
                "again."
            )
    rows = [_unit_rows(embedded.embeddings) for embedded in parts]
    measured = evaluate(np.concatenate(rows, axis=1), test, runs[0].config)
    write_per_query(RunFolder(target).per_query, test, measured)
    write_json(result, measured.metrics)


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, np.finfo(rows.dtype).tiny)
