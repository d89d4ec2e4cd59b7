"""When the nearest image is not near enough.

A threshold turns scores into answers: a reference whose score reaches it is
accepted as of the query's class, and where none does the answer is "none".
Two decisions can be calibrated.

- `"pairs"`: is this pair of images of one class? The false-match rate (FMR)
  is the share of pairs of two classes that are accepted, the false-non-match
  rate (FNMR) the share of pairs of one class that are not.
- `"nearest"`: of which class is this image, if of any? The FMR is then the
  share of images that would be given a wrong class if their own were not in
  the gallery: the nearest image of another class reaches the threshold. The
  FNMR is the share of images whose own class is in the gallery and is not the
  answer. It grows with the gallery: among G references an unknown image has
  G chances of a false match, so at a pair rate of 0.001 a gallery of 10,000
  can let most unknown images through. Calibrate on as many references as the
  search will have.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.embeddings.checks import as_embeddings
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.spaces import pair_scores
from keras_dml.evaluation.labels import Relevance
from keras_dml.evaluation.open_set.identification import best_scores
from keras_dml.evaluation.open_set.pair_quantiles import (
    count_pairs,
    select_thresholds,
)

DECISIONS = ("pairs", "nearest")
# Impostors, genuine decisions, and for each rate a score, its FMR and FNMR.
Calibrated = tuple[int, int, list[tuple[float, float, float]]]
# Doddington's rule of 30: with 30 errors a rate is known to within 30 %, with
# 90 % confidence, were the trials independent.
MIN_FALSE_MATCHES = 30


@dataclasses.dataclass(frozen=True, repr=False)
class Threshold(Brief):
    """A score from which on a reference is accepted.

    All fields are plain: `json.dumps(dataclasses.asdict(threshold))` writes
    one and `Threshold(**json.loads(text))` reads it.

    Args:
        score: Float, of `ExactIndex(metric)`; larger is nearer.
        target_fmr: Float, the false-match rate asked for.
        fmr: Float, the one reached on the calibration set, not above it.
        fnmr: Float, the false-non-match rate there.
        num_impostors: Integer, decisions that `fmr` is a share of.
        num_genuine: Integer, decisions that `fnmr` is a share of.
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
        """Boolean array, where scores reach the threshold."""
        return np.asarray(scores) >= self.score


def calibrate_threshold(
    embeddings: Any,
    labels: Any,
    fmr: float = 0.001,
    normalize: bool = True,
    decision: str = "pairs",
) -> Threshold:
    """Chooses the threshold of a false-match rate.

    The smallest float32 score at which the rate is not above `fmr`, an exact
    quantile over all pairs. Calibrate on validation classes: on training
    classes impostors are too far away.

    Args:
        embeddings: Array `(rows, dim)`.
        labels: Labels of the rows: 1D array, 0-1 matrix or list of sets.
        fmr: Float in (0, 1). Defaults to `0.001`.
        normalize: Boolean, whether scores are cosines or negative squared
            distances. Defaults to `True`.
        decision: `"pairs"` or `"nearest"`; see the module. Defaults to
            `"pairs"`.

    Returns:
        `Threshold`.

    Raises:
        UsageError: If there are too few pairs for the rate, no pair of one
            class, or an argument is out of range.

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
    """Thresholds of several false-match rates: FNMR@FMR.

    The arguments are those of `calibrate_threshold`, with several `fmr`; it
    costs no more than one.
    """
    rates = [_check_rate(rate) for rate in fmr]
    if decision not in DECISIONS:
        raise UsageError(
            f"`decision` must be one of {DECISIONS}. "
            f"Received: decision={decision!r}. Choose one of them."
        )
    rows = as_embeddings(embeddings)
    relevance = Relevance.of(labels, len(rows), labels, len(rows))
    metric = "cosine" if normalize else "euclidean"
    calibrate = _of_pairs if decision == "pairs" else _of_nearest
    num_impostors, num_genuine, found = calibrate(
        rows, relevance, rates, metric
    )
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
    rows: np.ndarray, relevance: Relevance, rates: list[float], metric: str
) -> Calibrated:
    def pairs():
        return pair_scores(rows, relevance, metric)

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
    rows: np.ndarray, relevance: Relevance, rates: list[float], metric: str
) -> Calibrated:
    own = np.arange(len(rows))
    genuine, impostor = best_scores(rows, rows, relevance, own, metric)
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


def _check_rate(rate: float) -> float:
    if not 0 < rate < 1:
        raise UsageError(
            "`fmr` must lie between 0 and 1, both excluded. "
            f"Received: fmr={rate}. 0.001 lets one impostor in a thousand "
            "through."
        )
    return float(rate)


def _allowed(rate: float, total: int) -> int:
    # 0.001 * 3000 is a little below 3 in floating point.
    return math.floor(rate * total * (1 + 1e-12))


def _check_numbers(
    num_impostors: int, num_genuine: int, rates: list[float], what: str
) -> None:
    needed = math.ceil(MIN_FALSE_MATCHES / min(rates) * (1 - 1e-12))
    if num_impostors < needed:
        raise UsageError(
            f"`fmr={min(rates)}` needs at least {needed} {what}, so that "
            f"{MIN_FALSE_MATCHES} of them are false matches. Received: "
            f"{num_impostors}. Calibrate on more images, or for a larger rate."
        )
    if num_genuine == 0:
        raise UsageError(
            "A threshold needs two images of some class. Received: none. "
            "Check the labels."
        )
