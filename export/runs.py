"""Exports the embedder of a run, and compares on some of its test images."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data.verification import naming_broken
from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation.index.spaces import metric_of
from keras_dml.export import on_tensorflow
from keras_dml.export.artifact import has_unit_rows
from keras_dml.export.exporting import ExportResult, export_embedder
from keras_dml.export.facts_of_run import images_to_compare, with_facts_of_run
from keras_dml.export.formats import choose_formats
from keras_dml.export.gallery import is_source, read_gallery
from keras_dml.export.options import OF_AN_INDEX, ExportOptions
from keras_dml.run.data import RunData, load_run_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.prefixes import with_dim
from keras_dml.run.run_threshold import RunThreshold
from keras_dml.run.same_images import check_measured_with
from keras_dml.run.thresholds import (
    check_rate,
    threshold_of,
    usual_threshold,
)
from keras_dml.run.trained_run import TrainedRun

DEFAULT_FORMATS = ("saved_model", "litert")
COMPARED_IMAGES = 250


def export_run(
    run: str | Path | TrainedRun,
    formats: str | Sequence[str] = DEFAULT_FORMATS,
    options: ExportOptions | None = None,
    *,
    output: str | Path | None = None,
    data_dir: str | Path | None = None,
    dim: int | None = None,
    max_false_match_rate: float | None = None,
    decision: str = "pairs",
    **changes: Any,
) -> ExportResult:
    """Exports the embedder of a finished run and checks each artifact.

    Where Keras runs on another backend than TensorFlow, another process does
    so, with TensorFlow.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        formats: One or more of `"saved_model"` for servers, `"litert"` for
            phones, and `"onnx"`. Defaults to the first two.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        output: Folder of the artifacts. Defaults to `None`, `RUN/export`, or
            `RUN/export-DIM` with a `dim`.
        data_dir: Folder that holds the data set's files: those of the gallery
            if it is images, else those of the run. Defaults to `None`, the
            folder that the run used.
        dim: Number of values of an embedding, one of the sizes in
            `model.matryoshka` of the run. Defaults to `None`, all of them.
        max_false_match_rate: The share in (0, 1) of wrong decisions on
            validation classes that sets the threshold in the manifests.
            Defaults to `None`, which is 0.001, or the next looser one that
            the validation images are enough for.
        decision: What the rate is a share of: `"pairs"` of images, or
            searches (`"nearest"`). Defaults to `"pairs"`.
        **changes: Arguments of `ExportOptions` that override `options`. The
            run gives `calibration`, `resize` and `squash` unless they are
            set, and adds its facts to `metadata`.

    Returns:
        `ExportResult`: size, cosines, retrieval and times of the embedder
        and of each artifact.

    Raises:
        UsageError: If there is no finished run, or the options contradict
            each other, or the validation images are too few for the rate.
        RunError: If the run's files do not belong together or change
            meanwhile, a format cannot express the model, or an artifact was
            rejected.

    Example:

    ```python
    export_run("runs/digits", "litert", quantize="int8", max_drop=0.01)
    ```
    """
    options = ExportOptions.of(options, changes)
    _check_formats(formats, options)
    check_rate(max_false_match_rate, decision)
    of_gallery = options.with_index and is_source(options.gallery)
    trained = TrainedRun.of(run, None if of_gallery else data_dir)
    if not on_tensorflow.is_here():
        again = functools.partial(
            export_run,
            output=output,
            data_dir=(
                data_dir or trained.data_dir or trained.config.data.data_dir
            ),
            dim=dim,
            max_false_match_rate=max_false_match_rate,
            decision=decision,
        )
        return on_tensorflow.call(again, trained.folder.path, formats, options)
    trained = with_dim(trained, dim)
    check = unchanged_files(trained.folder)
    embedder = trained.embedder
    threshold = _threshold(trained, max_false_match_rate, decision)
    data = load_run_data(trained.config)
    check_measured_with(trained.begun, data, trained.config, "test")
    if options.with_index:
        gallery = read_gallery(trained, options.gallery, data_dir)
        options = dataclasses.replace(options, gallery=gallery)
    with naming_broken(data.train, data.test):
        result = export_embedder(
            embedder,
            formats,
            output or f"{trained.folder.export}{trained.suffix}",
            *images_to_compare(data.test, trained.config, 4 * COMPARED_IMAGES),
            with_facts_of_run(options, data, trained, threshold),
            check=check,
        )
    result.of = len(data.test)
    result.trained = trained.config.data.all_classes
    result.has_threshold = threshold is not None
    result.metric = metric_of(has_unit_rows(embedder))
    return result


def exporter(
    formats: str | Sequence[str] = DEFAULT_FORMATS,
    options: ExportOptions | None = None,
    **changes: Any,
) -> Callable[..., ExportResult]:
    """Returns a function that exports a run at the end of its training.

    Args:
        formats: The formats to export. Defaults to `("saved_model",
            "litert")`.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        **changes: Arguments of `ExportOptions` that override `options`.

    Returns:
        Function for the argument `export` of `keras_dml.run.fit.fit`.

    Raises:
        UsageError: If a format or option is unknown, a package is missing, or
            an index is requested, whose embeddings are made after a training.
    """
    chosen = ExportOptions.of(options, changes)
    _check_formats(formats, chosen)
    if chosen.with_index:
        raise UsageError(
            "`with_index` needs embeddings by the trained network. Received: "
            "with_index=True for an export at the end of a training. Export "
            "the finished run with `export_run`."
        )

    def export(
        embedder: keras.Model,
        data: RunData,
        config: RunConfig,
        metrics: Mapping[str, Any],
        folder: RunFolder,
    ) -> ExportResult:
        run = TrainedRun.just_trained(folder.path, config, dict(metrics))
        if on_tensorflow.is_here():
            run.embedder = embedder
            result = _export_trained(run, data, formats, chosen)
        else:
            result = on_tensorflow.call(
                _export_trained, run, data, formats, chosen
            )
        logger.debug("%r", result)
        logger.info(
            "Exported to %s, for programs without keras-dml. On %s of the %s "
            "test images, %s",
            folder.export,
            f"{result[0]['images']:,}",
            f"{len(data.test):,}",
            " ".join(result.conclusions()),
        )
        return result

    return export


def _check_formats(
    formats: str | Sequence[str], options: ExportOptions
) -> None:
    """Raises, before any work, if a format cannot be written."""
    # The run gives references and gallery.
    defaults = {name: getattr(ExportOptions, name) for name in OF_AN_INDEX}
    others = dataclasses.replace(
        options, references=False, with_index=False, **defaults
    )
    for one in choose_formats(formats, options):
        one.check(others)


def _export_trained(
    run: TrainedRun,
    data: RunData,
    formats: str | Sequence[str],
    options: ExportOptions,
) -> ExportResult:
    """Exports a run that is about to be finished."""
    return export_embedder(
        run.embedder,
        formats,
        run.folder.export,
        *images_to_compare(data.test, run.config, COMPARED_IMAGES),
        with_facts_of_run(options, data, run, _threshold(run)),
    )


def _threshold(
    run: TrainedRun, rate: float | None = None, decision: str = "pairs"
) -> RunThreshold | None:
    """Returns the threshold of a match, or `None` if none can be found."""
    found: RunThreshold | None
    if rate is not None:
        found = threshold_of(run, rate, decision)
    elif distribute.num_workers() > 1:
        # The images that calibrate are embedded, for which all are needed.
        return None
    else:
        found, reason = usual_threshold(run, decision)
        if found is None:
            logger.info("No distance is known to be a match: %s", reason)
    return found and as_served(found, run.embedder)


def as_served(found: RunThreshold, embedder: keras.Model) -> RunThreshold:
    """Returns the threshold in the scores of the index of an export.

    That compares rows of length 1 by cosine, also those of a run that measures
    distances: `s = 1 - d**2 / 2`.

    Args:
        found: The threshold of a run.
        embedder: Its embedder.
    """
    own = found.threshold
    if own.metric == "cosine" or not has_unit_rows(embedder):
        return found
    own = dataclasses.replace(own, score=1 + own.score / 2, metric="cosine")
    return dataclasses.replace(found, threshold=own)


def unchanged_files(folder: RunFolder) -> Callable[[], None]:
    """Hashes a run's files, and returns a function that compares them later.

    Args:
        folder: The run.

    Returns:
        Function that raises a `RunError` if a file has changed.
    """
    files = (folder.record, folder.metrics, folder.embedder)
    before = {file: _digest(file) for file in files}

    def check():
        changed = [one.name for one in files if _digest(one) != before[one]]
        if changed:
            raise RunError(
                f"{', '.join(changed)} changed in {folder.path} while it was "
                "exported. Nothing was written. Export again when nothing "
                "else writes to the run."
            )

    return check


def _digest(file: Path) -> str | None:
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None
