"""Chooses the weights to keep, from the pretrained network to the trained one.

The weights in between often retrieve unseen classes better than either end.
The pretrained features are a choice too, so training cannot end below them.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data.manifest import Manifest
from keras_dml.evaluation import Difference, RetrievalResult, paired_bootstrap
from keras_dml.models import keep_features
from keras_dml.roles import query_rows
from keras_dml.run.data import StageData
from keras_dml.run.measure import GUARDED, embed, evaluate_briefly
from keras_dml.run.models import trains_on_features
from keras_dml.run.start import StartFeatures, apply_head
from keras_dml.wording import metric_title, percent

# Stricter than the usual 95 %, because the best of several is judged. Chosen
# for plain percentiles: docs/lab/photos.md, "When a gain is one".
LEVEL = 0.99
RESAMPLES = 5000


@dataclasses.dataclass(frozen=True)
class Choice:
    """Holds what was chosen between the start and the end of a training.

    Attributes:
        embedder: The embedder to keep.
        record: Dict of `"share"`, the chosen `a`; `"kept"`, whether the
            pretrained network was kept; and `"values"`, the monitored metric
            by share. With validation images also `"pretrained"`, this metric
            of the features, and `"lower"`, the shares that were left out
            because they lower R@1.
        rows: What it makes of the validation images, if there are any.
    """

    embedder: keras.Model
    record: dict[str, Any]
    rows: np.ndarray | None = None


def interpolate(
    embedder: keras.Model,
    start: Sequence[np.ndarray],
    data: StageData,
    config: RunConfig,
    known: StartFeatures | None = None,
) -> Choice:
    """Sets an embedder between its start and its present weights.

    `w = (1 - a) w_start + a w_trained`, with the `a` of
    `evaluation.interpolate` that retrieves best on the validation classes
    among those that do not lower R@1 below that of the pretrained features (a
    paired bootstrap of the images, 95 %). If it is not better than these
    features beyond chance, whether images or classes are drawn (99 %), the
    pretrained network is kept, and the features become the embedding.

    Without validation images `a` is that of `unvalidated_share`. If it is 0
    and the head did not start as a whitening, the pretrained network is kept.

    Args:
        embedder: The trained embedder; its weights are changed in place.
        start: The values of its variables before training.
        data: Images of the stage, with validation images.
        config: The settled configuration.
        known: `StartFeatures` of the stage. Defaults to `None`, new ones.

    Returns:
        `Choice`.

    Reference:
        Wortsman et al., "Robust fine-tuning of zero-shot models", 2022,
        equation 1.
    """
    monitor = config.evaluation.monitor
    trained = [np.array(variable) for variable in embedder.variables]
    if data.validation is None:
        share = unvalidated_share(config.evaluation.interpolate)
        _assign(embedder, start, trained, share)
        kept = share == 0 and not config.model.whitening
        found = {"share": share, "kept": kept, "values": {}}
        return Choice(keep_features(embedder) if kept else embedder, found)
    logger.info(
        "Comparing the network before training with the trained one ..."
    )
    _assign(embedder, start, trained, 0.0)
    features = (known or StartFeatures(config)).of(embedder, data.validation)
    pretrained = evaluate_briefly(features, data.validation, config)
    rows = {0.0: apply_head(embedder, features)}
    for share in sorted({*config.evaluation.interpolate} - {0.0}):
        _assign(embedder, start, trained, share)
        rows[share] = (
            apply_head(embedder, features)
            if trains_on_features(config)
            else embed(embedder, data.validation, config, again=True)
        )
    results = {
        share: evaluate_briefly(embeddings, data.validation, config)
        for share, embeddings in rows.items()
    }
    values = {share: one.metrics[monitor] for share, one in results.items()}
    logger.debug(
        "Validation %s by share of the way: %s.",
        monitor,
        ", ".join(f"{share:g} {value:.4f}" for share, value in values.items()),
    )
    lower = [
        share
        for share, one in results.items()
        if _gain(one, pretrained, GUARDED).high < 0
    ]
    best = max(values.keys() - lower or values, key=values.__getitem__)
    gain = _least_gain(results[best], pretrained, monitor, data.validation)
    kept = best in lower or gain.low <= 0
    _assign(embedder, start, trained, 0.0 if kept else best)
    if kept:
        embedder = keep_features(embedder)
        logger.info(
            "Training is discarded%s: %s.",
            ", and not repeated" if config.refit else "",
            f"it lowers {metric_title(GUARDED)} on the validation images"
            if best in lower
            else _no_gain(
                gain, pretrained.metrics[monitor], monitor, data.validation
            ),
        )
    else:
        logger.info(
            "%s was chosen: its %s on the validation images is %.3f, that of "
            "the pretrained network %.3f.",
            _mixture(best),
            metric_title(monitor),
            values[best],
            pretrained.metrics[monitor],
        )
    record = {
        "share": 0.0 if kept else best,
        "kept": kept,
        "values": {f"{share:g}": value for share, value in values.items()},
        "pretrained": pretrained.metrics[monitor],
        "lower": lower,
    }
    return Choice(embedder, record, features if kept else rows[best])


def unvalidated_share(shares: Sequence[float]) -> float:
    """Returns the share of the way to keep where no image validates.

    It is the middle one, for the end of a training may be worse than its
    start, and nothing would tell: docs/lab/photos.md, "Nothing validates".

    Args:
        shares: The shares of `evaluation.interpolate`, at least one.

    Example:

    >>> unvalidated_share([0.0, 0.25, 0.5, 0.75, 1.0]), unvalidated_share([1.0])
    (0.5, 1.0)
    """
    ordered = sorted({*shares})
    return ordered[len(ordered) // 2]


def _mixture(share: float) -> str:
    """Returns the network at a share of the way through the training."""
    if share == 1:
        return "The trained network"
    if share == 0:
        return "The network before training, its features weighted,"
    return f"An average of both networks, {percent(share)} of it trained,"


def _assign(embedder, start, trained, share):
    for variable, old, new in zip(
        embedder.variables, start, trained, strict=True
    ):
        if not np.issubdtype(old.dtype, np.floating):
            continue
        variable.assign((1 - share) * old + share * new)


def _gain(
    result: RetrievalResult,
    pretrained: RetrievalResult,
    metric: str,
    **arguments: Any,
) -> Difference:
    values = result.per_query[metric], pretrained.per_query[metric]
    return paired_bootstrap(
        *values, num_resamples=RESAMPLES, widen=False, **arguments
    )


def _least_gain(
    result: RetrievalResult,
    pretrained: RetrievalResult,
    metric: str,
    validation: Manifest,
) -> Difference:
    """Returns the gain with the lower of two intervals.

    Classes are what another user has others of, but few of them may be equal
    by chance where their images are not.
    """
    gains = [_gain(result, pretrained, metric, level=LEVEL)]
    classes = validation.labels[query_rows(validation.role)]
    measured = ~np.isnan(result.per_query[metric])
    if len(np.unique(classes[measured], axis=0)) > 1:
        gains.append(
            _gain(result, pretrained, metric, level=LEVEL, classes=classes)
        )
    return min(gains, key=lambda gain: gain.low)


def _no_gain(
    gain: Difference, before: float, metric: str, validation: Manifest
) -> str:
    return (
        f"on {len(validation):,} validation images of "
        f"{validation.num_classes:,} classes, {metric_title(metric)} was "
        f"{before:.3f} before it and {before + gain.difference:.3f} after, "
        f"{gain.difference:+.3f}, which is no gain beyond chance "
        f"({percent(gain.level)} interval {gain.low:+.3f} to {gain.high:+.3f})"
    )
