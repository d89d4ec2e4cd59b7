"""Calibrates thresholds that decide whether an image is near enough.

A threshold turns scores into answers: a reference whose score reaches the
threshold is accepted as an image of the query's class. If no reference reaches
it, the answer is "none". A threshold is calibrated for one of two decisions.

- `"pairs"`: do these two images have the same class? The false-match rate
  (FMR) is the share of pairs of two classes that are accepted. The
  false-non-match rate (FNMR) is the share of pairs of one class that are not.
- `"nearest"`: which class does this image have, if any? The FMR is the share
  of images that would get a wrong class if their own class were not in the
  gallery, because the nearest image of another class reaches the threshold.
  The FNMR is the share of images whose own class is in the gallery but is not
  the answer. The FMR grows with the gallery: among G references an unknown
  image has G chances of a false match, so at a pair rate of 0.001 a gallery of
  10,000 can let most unknown images through. Calibrate on as many references
  as the search will have.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import in_interval, one_of, require
from keras_dml.embeddings.checks import as_embeddings, one_or_several
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.spaces import metric_of, pair_scores
from keras_dml.evaluation.labels import Relevance, as_label_sets
from keras_dml.evaluation.open_set.pair_quantiles import (
    count_pairs,
    select_thresholds,
)

# The numbers of impostor and genuine decisions, and for each rate a score, its
# FMR and its FNMR.
Calibrated = tuple[int, int, list[tuple[float, float, float]]]
# Doddington's rule of 30: if the trials are independent, 30 errors determine a
# rate to within 30 % with 90 % confidence.
MIN_FALSE_MATCHES = 30


@dataclasses.dataclass(frozen=True, repr=False)
class Threshold(Brief):
    """The smallest score at which a reference is accepted.

    All fields are plain values: `json.dumps(dataclasses.asdict(threshold))`
    writes a threshold and `Threshold(**json.loads(text))` reads it.

    Args:
        score: Float, a score of `ExactIndex(metric)`; larger is nearer.
        target_fmr: Float, the requested false-match rate.
        fmr: Float, the false-match rate on the calibration set, at most
            `target_fmr`.
        fnmr: Float, the false-non-match rate on the calibration set.
        num_impostors: Integer, the number of decisions behind `fmr`.
        num_genuine: Integer, the number of decisions behind `fnmr`.
        metric: `"cosine"` or `"euclidean"`.
        decision: `"pairs"` or `"nearest"`.
    """

    score: float
    target_fmr: float
    fmr: float
    fnmr: float
    num_impostors: int
    num_genuine: int
    metric: str
    decision: str

    def accepts(self, scores: Any) -> np.ndarray:
        """Returns a boolean array: whether each score reaches `score`."""
        return np.asarray(scores) >= self.score


def calibrate_threshold(
    embeddings: Any,
    labels: Any,
    fmr: float = 0.001,
    normalize: bool = True,
    decision: str = "pairs",
) -> Threshold:
    """Chooses the threshold for a false-match rate.

    The threshold is the smallest float32 score at which the rate is at most
    `fmr`, an exact quantile over all pairs. Calibrate on validation classes:
    training classes are farther apart than new classes, so their threshold
    would be too low.

    Args:
        embeddings: Array `(rows, dim)`.
        labels: Labels of the rows: 1D array, 0-1 matrix or list of sets.
        fmr: Float in (0, 1). Defaults to `0.001`.
        normalize: Boolean, whether scores are cosines; otherwise they are
            negative squared distances. Defaults to `True`.
        decision: `"pairs"` or `"nearest"`, explained in the docstring of the
            module. Defaults to `"pairs"`.

    Returns:
        `Threshold`.

    Raises:
        UsageError: If there are too few pairs for the rate, if no class has
            two images, or if an argument is out of range.

    Example:

    >>> rows = np.random.default_rng(0).standard_normal((100, 4))
    >>> threshold = calibrate_threshold(rows, np.arange(100) % 5, fmr=0.01)
    >>> threshold.fmr <= 0.01
    True

    Reference:
        ISO/IEC 19795-1, "Biometric performance testing and reporting";
        Doddington et al., "The NIST speaker recognition evaluation", 2000
        (rule of 30).
    """
    return calibrate_thresholds(
        embeddings, labels, (fmr,), normalize, decision
    )[0]


def calibrate_thresholds(
    embeddings: Any,
    labels: Any,
    fmr: Iterable[float] = (0.1, 0.01, 0.001),
    normalize: bool = True,
    decision: str = "pairs",
) -> list[Threshold]:
    """Chooses thresholds for several false-match rates: FNMR@FMR.

    The arguments are those of `calibrate_threshold`, but `fmr` holds several
    rates and defaults to `(0.1, 0.01, 0.001)`. Several rates take no more
    time than one.
    """
    advice = "0.001 lets one impostor in a thousand through."
    several = one_or_several(fmr, "fmr")
    require(several, "fmr", "at least one rate in (0, 1)", fmr, advice)
    rates = [in_interval("fmr", rate, 0, 1, advice=advice) for rate in several]
    calibrate = DECISIONS[one_of("decision", decision, DECISIONS)]
    rows = as_embeddings(embeddings)
    # Checked here, where they have the name that the caller knows.
    as_label_sets(labels, len(rows), "labels")
    metric = metric_of(normalize)
    num_impostors, num_genuine, found = calibrate(rows, labels, rates, metric)
    return [
        Threshold(
            score=score,
            target_fmr=rate,
            fmr=false_matches,
            fnmr=missed,
            num_impostors=num_impostors,
            num_genuine=num_genuine,
            metric=metric,
            decision=decision,
        )
        for rate, (score, false_matches, missed) in zip(
            rates, found, strict=True
        )
    ]


def _of_pairs(
    rows: np.ndarray, labels: Any, rates: list[float], metric: str
) -> Calibrated:
    relevance = Relevance.of(labels, len(rows), labels, len(rows))
    pairs = functools.partial(pair_scores, rows, relevance, metric)
    num_genuine = int(relevance.counts(np.arange(len(rows))).sum()) // 2
    num_impostors = len(rows) * (len(rows) - 1) // 2 - num_genuine
    _check_numbers(num_impostors, num_genuine, rates, "pairs of two classes")
    allowed = [_allowed(rate, num_impostors) for rate in rates]
    found = [
        (score, false_matches / num_impostors, missed / num_genuine)
        for score, false_matches, missed in select_thresholds(
            pairs, count_pairs(pairs), allowed
        )
    ]
    return num_impostors, num_genuine, found


def _of_nearest(
    rows: np.ndarray, labels: Any, rates: list[float], metric: str
) -> Calibrated:
    index = ExactIndex(metric).build(rows)
    genuine, impostor = index.nearest_scores(rows, labels, labels, index.ids)
    unknown = np.sort(impostor[np.isfinite(impostor)])[::-1]
    known = np.isfinite(genuine)
    num_genuine = int(np.count_nonzero(known))
    _check_numbers(
        len(unknown), num_genuine, rates, "images with one of another class"
    )
    found = []
    for rate in rates:
        next_best = unknown[_allowed(rate, len(unknown))]
        score = np.nextafter(next_best, np.float32(np.inf))
        right = (genuine >= score) & (genuine > impostor)
        false_matches = float(np.mean(unknown >= score))
        missed = float(np.mean(~right[known]))
        found.append((float(score), false_matches, missed))
    return len(unknown), num_genuine, found


DECISIONS = {"pairs": _of_pairs, "nearest": _of_nearest}


def _allowed(rate: float, total: int) -> int:
    # 0.001 * 3000 is a little below 3 in floating point; no rate lets all in.
    return min(math.floor(rate * total * (1 + 1e-12)), total - 1)


def _check_numbers(
    num_impostors: int, num_genuine: int, rates: list[float], what: str
) -> None:
    needed = math.ceil(MIN_FALSE_MATCHES / min(rates) * (1 - 1e-12))
    if num_impostors < needed:
        raise UsageError(
            f"A false-match rate of {min(rates)} needs at least {needed} "
            f"{what}, so that {MIN_FALSE_MATCHES} of them are false matches. "
            f"Received: {num_impostors}. Calibrate on more images, or for a "
            "larger rate."
        )
    if num_genuine == 0:
        raise UsageError(
            "A threshold needs two images of some class. Received: none. "
            "Check the labels."
        )
