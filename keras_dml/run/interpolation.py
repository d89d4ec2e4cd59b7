"""Chooses between the start and the end of a training on validation classes.

The weights in between often retrieve unseen classes better than either end,
and the start is the pretrained network: so training cannot end below it.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.evaluation import RetrievalResult, paired_bootstrap
from keras_dml.models import pooled_features
from keras_dml.run.data import StageData
from keras_dml.run.measure import embed, evaluate, measure
from keras_dml.run.start import apply_head, some_images
from keras_dml.wording import metric_title

PRINCIPAL_COMPONENTS = 1.0


def interpolate(
    embedder: keras.Model,
    start: Sequence[np.ndarray],
    data: StageData,
    config: RunConfig,
) -> dict[str, Any]:
    """Sets an embedder between its start and its present weights.

    `w = (1 - a) w_start + a w_trained`, with the `a` of
    `evaluation.interpolate` that retrieves best on the validation classes. If
    none is better than the pretrained features beyond chance (a bootstrap of
    the validation images, 95 %), the pretrained network is kept, and the head
    becomes a principal component analysis of its features. Without validation
    images `a` is the largest share.

    Args:
        embedder: The trained embedder; changed in place.
        start: The values of its variables before training.
        data: Images of the stage, with validation images.
        config: The settled configuration.

    Returns:
        Dict of `"share"`, the chosen `a`; `"values"`, the monitored metric by
        share; and `"kept"`, whether the pretrained network was kept.

    Reference:
        Wortsman et al., "Robust fine-tuning of zero-shot models", 2022,
        equation 1.
    """
    monitor = config.evaluation.monitor
    trained = [np.array(variable) for variable in embedder.variables]
    if data.validation is None:
        share = max(config.evaluation.interpolate)
        _assign(embedder, start, trained, share)
        return {"share": share, "kept": False, "values": {}}
    results: dict[float, RetrievalResult] = {}
    logger.info(
        "Comparing the network before training with the trained one ..."
    )
    _assign(embedder, start, trained, 0.0)
    features = embed(pooled_features(embedder), data.validation, config)
    pretrained = evaluate(features, data.validation, config)
    before = apply_head(embedder, features)
    results[0.0] = evaluate(before, data.validation, config)
    for share in sorted({*config.evaluation.interpolate} - {0.0}):
        _assign(embedder, start, trained, share)
        results[share] = measure(embedder, data.validation, config)
    values = {share: one.metrics[monitor] for share, one in results.items()}
    best = max(values, key=values.__getitem__)
    gain = paired_bootstrap(
        results[best].per_query[monitor], pretrained.per_query[monitor]
    )
    kept = gain.low <= 0
    logger.debug(
        "Validation %s by share of the way: %s.",
        monitor,
        ", ".join(f"{share:g} {value:.4f}" for share, value in values.items()),
    )
    _assign(embedder, start, trained, 0.0 if kept else best)
    if kept:
        _keep_features(embedder, data, config)
        logger.info(
            "The pretrained network was kept, and training discarded: on %d "
            "validation images it changed %s by %+.4f, which is no gain beyond "
            "chance (95 %% interval %+.4f to %+.4f).",
            len(data.validation),
            metric_title(monitor),
            gain.difference,
            gain.low,
            gain.high,
        )
    else:
        logger.info(
            "%s was kept: it is the best on the validation images.",
            _mixture(best),
        )
    return {
        "share": 0.0 if kept else best,
        "kept": kept,
        "values": {f"{share:g}": value for share, value in values.items()},
        "pretrained": pretrained.metrics[monitor],
    }


def _mixture(share: float) -> str:
    """Returns the network at a share of the way through the training."""
    if share == 1:
        return "The trained network"
    if share == 0:
        return "The network before training, its features weighted,"
    return f"An average of both networks, {100 * share:.0f} % of it trained,"


def _assign(embedder, start, trained, share):
    for variable, old, new in zip(
        embedder.variables, start, trained, strict=True
    ):
        if not np.issubdtype(old.dtype, np.floating):
            continue
        variable.assign((1 - share) * old + share * new)


def _keep_features(
    embedder: keras.Model, data: StageData, config: RunConfig
) -> None:
    """Makes the head a projection that changes the features least."""
    images = some_images(data.fit)
    features = embed(pooled_features(embedder), images, config)
    embedder.get_layer("head").assign_whitening(
        features, images.labels, PRINCIPAL_COMPONENTS
    )
