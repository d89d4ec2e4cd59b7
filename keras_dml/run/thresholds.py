"""Calibrates the similarity that a match of a run must reach.

Thresholds are calibrated on the classes that the run held out of its training
to choose the weights, or else on the images that it held out, and stored in
`RUN/thresholds.json` with the hash of the weights. After a refit they are those
of the network that saw none of these images; a network that trained on all
classes takes those of the measured run.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.checks import in_interval, one_of, optional
from keras_dml.console import logger
from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation import ExactIndex, calibrate_threshold
from keras_dml.evaluation.labels import as_label_sets
from keras_dml.evaluation.open_set.thresholds import DECISIONS
from keras_dml.files import is_read_only, load_json, write_json
from keras_dml.run.folder import RunFolder
from keras_dml.run.run_threshold import RunThreshold
from keras_dml.run.trained_run import EmbeddedImages, TrainedRun

FILE = "thresholds.json"
# The first one that the validation images are enough for is the default.
FALSE_MATCH_RATES = (0.001, 0.01, 0.05, 0.1, 0.2)
# The metric of a final training that holds the thresholds of the measured run.
CARRIED = "thresholds"


def check_rate(max_false_match_rate: float | None, decision: str) -> None:
    """Raises a `UsageError` unless `threshold_of` may be given these."""
    optional(in_interval, "max_false_match_rate", max_false_match_rate, 0, 1)
    one_of("decision", decision, DECISIONS)


def usual_threshold(
    run: TrainedRun, decision: str = "pairs"
) -> tuple[RunThreshold | None, str]:
    """Returns the threshold of the strictest usual rate, 0.001 to 0.2.

    Args:
        run: The run.
        decision: As for `threshold_of`. Defaults to `"pairs"`.

    Returns:
        Tuple of the threshold, `None` if the validation images are enough for
        none of the rates; and why they are not enough for the strictest rate,
        or an empty text.
    """
    reason = ""
    validation = functools.cache(lambda: run.part("validation"))
    for rate in FALSE_MATCH_RATES:
        try:
            return _threshold(run, rate, decision, validation), reason
        except UsageError as error:
            reason = reason or str(error)
    return None, reason


def threshold_of(
    run: TrainedRun, max_false_match_rate: float, decision: str = "pairs"
) -> RunThreshold:
    """Returns the threshold for a false-match rate, stored or calibrated.

    Args:
        run: The run.
        max_false_match_rate: Float in (0, 1).
        decision: `"pairs"` if the rate is a share of the pairs of different
            classes, or `"nearest"` if it is a share of the images to search
            for. Defaults to `"pairs"`.

    Returns:
        `RunThreshold`.

    Raises:
        UsageError: If the run has no validation images, or too few for this
            rate; or if it trained on all classes and the measured run has no
            threshold of this rate.
    """
    validation = functools.partial(run.part, "validation")
    return _threshold(run, max_false_match_rate, decision, validation)


def thresholds_of(
    run: TrainedRun,
    rates: Iterable[float],
    decisions: Iterable[str] = ("pairs",),
) -> list[RunThreshold]:
    """Returns the thresholds for all rates with enough validation images.

    Args:
        run: The run.
        rates: False-match rates, floats in (0, 1).
        decisions: What the rates are shares of, as for `threshold_of`.
            Defaults to `("pairs",)`.
    """
    found = []
    validation = functools.cache(lambda: run.part("validation"))
    for decision, rate in itertools.product(decisions, rates):
        with contextlib.suppress(UsageError):
            found.append(_threshold(run, rate, decision, validation))
    return found


def usual_thresholds(run: TrainedRun) -> dict[str, Any]:
    """Returns the thresholds of all usual rates, for a final training.

    Args:
        run: The measured run, or a prefix of it.
    """
    found = {}
    for one in thresholds_of(run, FALSE_MATCH_RATES, DECISIONS):
        key = _key(one.threshold.target_fmr, one.threshold.decision)
        found[key + run.suffix] = dataclasses.asdict(one.of_measured_run())
    return found


def _key(rate: float, decision: str) -> str:
    return f"{decision} {rate!r}"


def _threshold(
    run: TrainedRun,
    rate: float,
    decision: str,
    validation: Callable[[], EmbeddedImages | None],
) -> RunThreshold:
    key = _key(rate, decision)
    if run.metrics.get("final"):
        measured = _measured(run)
        if measured is None:
            return _carried(run, key)
        validation = functools.partial(measured.part, "validation")
        found = _threshold(measured, rate, decision, validation)
        return found.of_measured_run()
    stored = _read(run)
    if key not in stored["thresholds"]:
        found = _calibrate(run, rate, decision, validation())
        stored["thresholds"][key] = dataclasses.asdict(found)
        _write(_file(run), stored)
    return RunThreshold.from_dict(stored["thresholds"][key])


def _measured(run: TrainedRun) -> TrainedRun | None:
    """Returns the measured run whose thresholds a final training lacks.

    Several workers cannot calibrate before it; its folder lies in that run's.
    """
    folder = RunFolder(run.folder.path.parent)
    if CARRIED in run.metrics or run.suffix:
        return None
    return TrainedRun(folder.path, run.data_dir) if folder.finished else None


def _carried(run: TrainedRun, key: str) -> RunThreshold:
    """Returns a threshold of the run that was measured before this one."""
    thresholds, key = run.metrics.get(CARRIED, {}), key + run.suffix
    if key not in thresholds:
        raise UsageError(
            f"Which distances are a match is known for the run "
            f"{run.folder.path} only as its measured run has found, because no "
            f"class is left to tell: {', '.join(thresholds) or 'not at all'}. "
            f"Received: {key}."
        )
    try:
        return RunThreshold.from_dict(thresholds[key])
    except ValueError as error:
        raise RunError(
            f"`{CARRIED}` in {run.folder.metrics} cannot be read. Restore the "
            "file, or train the run again."
        ) from error


def _calibrate(
    run: TrainedRun,
    rate: float,
    decision: str,
    validation: EmbeddedImages | None,
) -> RunThreshold:
    if validation is None:
        raise UsageError(
            f"Which distances are a match is not known: the run "
            f"{run.folder.path} held no images out to tell. `fit` does, unless "
            "`data.validation` says otherwise or its last stage trains on all "
            "of them."
        )
    rows = validation.embeddings.embeddings
    labels = validation.embeddings.labels
    threshold = calibrate_threshold(
        rows,
        labels,
        fmr=rate,
        normalize=run.config.evaluation.normalize,
        decision=decision,
    )
    index = ExactIndex(threshold.metric).build(rows)
    _, impostors = index.nearest_scores(rows, labels, labels, index.ids)
    found = RunThreshold(
        threshold,
        float(np.mean(threshold.accepts(impostors))),
        len(rows),
        len(np.unique(as_label_sets(labels, len(rows), "labels").values)),
        run.metrics.get("validated_on", "classes"),
    )
    return found.of_measured_run() if run.metrics.get("refit") else found


def _file(run: TrainedRun) -> Path:
    path = run.folder.path / FILE
    return path.with_stem(f"{path.stem}{run.suffix}")


def _write(path: Path, stored: dict[str, Any]) -> None:
    """Stores thresholds; the run of somebody else goes without."""
    try:
        write_json(path, stored)
    except OSError as error:
        if not is_read_only(error):
            raise
        logger.warning(
            "%s cannot be written (%s): it is calibrated again each time.",
            path,
            error.strerror,
        )


def _read(run: TrainedRun) -> dict[str, Any]:
    """Reads the stored thresholds, or returns none if the weights changed."""
    path = _file(run)
    if path.is_file():
        try:
            stored = load_json(path)
            for values in stored["thresholds"].values():
                RunThreshold.from_dict(values)
            if stored["hash"] == run.weights_hash:
                return stored
            reason = "is of other weights"
        except (ValueError, KeyError, TypeError, AttributeError):
            reason = "cannot be read"
        logger.info("Calibrating again: %s %s.", path, reason)
    return {"hash": run.weights_hash, "thresholds": {}}
