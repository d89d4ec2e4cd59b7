"""What a training starts from: pretrained features and a head made of them."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data.manifest import Manifest
from keras_dml.evaluation import RetrievalResult
from keras_dml.models import (
    forward_function,
    pooled_features,
    refresh_bn,
    with_image_size,
)
from keras_dml.models.prefixes import proxies_of
from keras_dml.run.batches import whole_batches
from keras_dml.run.data import RunData, StageData
from keras_dml.run.measure import embed, evaluate, evaluate_briefly, raw_pixels
from keras_dml.run.models import Models

# More images would take time and hardly change the statistics.
MOST_IMAGES = 3000


class StartFeatures:
    """Computes the pooled features of the network before training, once each.

    Args:
        config: The settled configuration.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._rows: dict[str, np.ndarray] = {}

    def among(self, images: Manifest) -> Manifest:
        """Returns the images whose features are known.

        Args:
            images: The images.
        """
        known = [name in self._rows for name in images.ids.tolist()]
        return images.select(np.array(known, bool))

    def of(self, embedder: keras.Model, images: Manifest) -> np.ndarray:
        """Returns the features of images, in their order.

        Args:
            embedder: An embedder whose network has not trained.
            images: The images.
        """
        ids = images.ids.tolist()
        new = [at for at, name in enumerate(ids) if name not in self._rows]
        if new:
            network = pooled_features(embedder)
            rows = embed(network, images.select(np.array(new)), self._config)
            self._rows |= zip((ids[at] for at in new), rows, strict=True)
        return np.stack([self._rows[name] for name in ids])


def start_from_features(
    models: Models,
    data: StageData,
    config: RunConfig,
    known: StartFeatures | None = None,
    earlier: StageData | None = None,
) -> float | None:
    """Sets the head and the proxies from features of the training images.

    With `model.whitening`, the head becomes the whitening whose shrinkage
    retrieves best on validation classes. With `model.proxies.class_means`,
    every proxy becomes the mean of its class, if the loss has proxies.

    Args:
        models: The models, whose network has not trained.
        data: Images of the stage.
        config: The settled configuration.
        known: `StartFeatures`, which keeps the features. Defaults to `None`,
            new ones.
        earlier: Images of the stage that this one repeats, whose features
            say enough. A resumed run computes them first, in the batches in
            which a run without a break did: the last digits depend on them.
            Defaults to `None`.

    Returns:
        The shrinkage, or `None` if the head stays random.
    """
    candidates = config.model.whitening
    class_means = _has_class_means(models, config)
    if not candidates and not class_means:
        return None
    known = known or StartFeatures(config)

    def chosen(images: Manifest) -> Manifest:
        if not candidates:
            # Means without a whitening are a paper's, of all images.
            return images
        return some_images(images, _enough(images, class_means))

    images = chosen(data.fit)
    if earlier is None:
        logger.info(
            "Looking at %s training images, to start from what the network "
            "already tells apart ...",
            f"{len(images):,}",
        )
    else:
        known.of(models.embedder, chosen(earlier.fit))
        if earlier.validation is not None:
            known.of(models.embedder, earlier.validation)
        again = known.among(data.fit)
        if candidates and again.num_classes == data.fit.num_classes:
            images = again
    features = known.of(models.embedder, images)
    shrinkage = None
    if candidates:
        shrinkage = _choose(
            models.embedder, features, images, data, config, known
        )
    if class_means:
        _assign_class_means(models, features, images)
    return shrinkage


def refresh(
    models: Models, images: Manifest, config: RunConfig, steps: int
) -> None:
    """Moves the statistics of batch normalization to those of the images.

    Args:
        models: The models.
        images: Training images.
        config: The settled configuration.
        steps: Number of batches.
    """
    # Not the trainer, whose layers share a batch among the replicas.
    refresh_bn(
        models.embedder,
        whole_batches(images, config).map(
            lambda inputs, labels: inputs["image"]
        ),
        steps,
    )


def renew_class_means(
    models: Models, images: Manifest, config: RunConfig
) -> None:
    """Sets proxies that began as class means to the means of today.

    Args:
        models: The models, whose batch normalization has changed.
        images: Training images.
        config: The settled configuration.
    """
    if _has_class_means(models, config):
        features = embed(pooled_features(models.embedder), images, config)
        _assign_class_means(models, features, images)


def class_similarity(
    models: Models, data: StageData, config: RunConfig
) -> np.ndarray | None:
    """Returns how alike the training classes are to the untrained network.

    It depends on the configuration alone: a resumed run finds the same.

    Args:
        models: The models of the stage, whose network has not trained.
        data: Images of the stage.
        config: The settled configuration.

    Returns:
        Float32 array `(classes, classes)`, the cosines of the mean features of
        the classes; `None` unless `sampling.kind` is `hard_classes`.
    """
    if config.sampling.kind != "hard_classes":
        return None
    images = some_images(data.fit, _enough(data.fit))
    logger.info(
        "Embedding %s images, to find classes that are alike ...",
        f"{len(images):,}",
    )
    features = embed(pooled_features(models.embedder), images, config)
    rows, labels = by_label(_unit(features), images)
    means = np.zeros((data.fit.num_classes, rows.shape[1]), np.float32)
    np.add.at(means, labels, rows)
    means = _unit(means)
    return means @ means.T


def _has_class_means(models: Models, config: RunConfig) -> bool:
    # Proxies of groups of classes, as along a manifold, stand for no class.
    return config.model.proxies.class_means and any(
        layer.name == "proxies" and hasattr(layer, "assign_class_means")
        for layer in models.trainer.layers
    )


def _assign_class_means(
    models: Models, features: np.ndarray, images: Manifest
) -> None:
    head = models.embedder.get_layer("head")
    embeddings = head(features, training=False)
    for size, layer in proxies_of(models.trainer, head.dim).items():
        layer.assign_class_means(head.prefix(embeddings, size), images.labels)


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)


def _enough(images: Manifest, every_class: bool = True) -> int:
    """Returns how many images say enough, of every class if that is wanted."""
    return max(MOST_IMAGES, images.num_classes if every_class else 0)


def some_images(images: Manifest, most: int) -> Manifest:
    """Returns evenly spread images, so that every class keeps its share."""
    if len(images) <= most:
        return images
    sets = images.label_sets
    order = sets.owners[np.argsort(sets.values, kind="stable")]
    _, first = np.unique(order, return_index=True)
    order = order[np.sort(first)]
    kept = order[np.linspace(0, len(images) - 1, most).astype(int)]
    classes, rows = np.unique(sets.values, return_index=True)
    if len(classes) <= most:
        # The mean of a class needs an image.
        held = sets.values[np.isin(sets.owners, kept)]
        others = sets.owners[rows[~np.isin(classes, held)]]
        kept = np.union1d(kept, others)
    return images.select(np.sort(kept))


def by_label(
    features: np.ndarray, images: Manifest
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the features of images once for each of its labels, and these."""
    sets = images.label_sets
    return features[sets.owners], sets.values


def apply_head(embedder: keras.Model, features: np.ndarray) -> np.ndarray:
    """Returns the embeddings that the head makes of pooled features."""
    pooled = embedder.get_layer("pooling").output
    head = keras.Model(pooled, embedder.output)
    return np.asarray(forward_function(head)(features))


def measure_baselines(
    embedder: keras.Model,
    features: np.ndarray,
    data: RunData,
    config: RunConfig,
) -> dict[str, RetrievalResult]:
    """Measures on the test images what the run starts with.

    Args:
        embedder: The embedder before training.
        features: Its pooled features of the test images.
        data: The images of the run.
        config: The settled configuration.

    Returns:
        By name: `"off_the_shelf"`, of pretrained features of images of their
        natural size, or of raw pixels without pretrained weights;
        `"pretrained"`, of features of images of the run's size; `"before"`,
        of the embedder as it is.
    """
    test = data.test
    before = evaluate(apply_head(embedder, features), test, config)
    if config.model.weights == "none":
        features = raw_pixels(test, config)
    pretrained = off_the_shelf = evaluate(features, test, config)
    natural = config.data.natural_size
    enlarged = natural != config.data.image_size
    if natural and enlarged and config.model.weights != "none":
        small = config.changed(
            data={"image_size": natural}, augmentation={"resize": natural}
        )
        model = with_image_size(embedder, natural, until="pooling")
        off_the_shelf = evaluate(embed(model, test, small), test, config)
    return {
        "off_the_shelf": off_the_shelf,
        "pretrained": pretrained,
        "before": before,
    }


def _choose(
    embedder: keras.Model,
    features: np.ndarray,
    images: Manifest,
    data: StageData,
    config: RunConfig,
    known: StartFeatures,
) -> float:
    """Sets the head to the best whitening and returns its shrinkage."""
    candidates: Sequence[float] = config.model.whitening
    head, validation = embedder.get_layer("head"), data.validation
    best, highest, weights = candidates[0], -np.inf, None
    if validation is None or len(candidates) == 1:
        # What shrinks most loses least where classes are few.
        best = max(candidates)
        head.assign_whitening(*by_label(features, images), best)
    else:
        unseen = known.of(embedder, validation)
        for shrinkage in candidates:
            head.assign_whitening(*by_label(features, images), shrinkage)
            rows = apply_head(embedder, unseen)
            result = evaluate_briefly(rows, validation, config)
            value = result.metrics[config.evaluation.monitor]
            if weights is None or value > highest:
                best, highest, weights = shrinkage, value, head.get_weights()
        head.set_weights(weights)
    logger.debug("The head starts as a whitening of shrinkage %g.", best)
    return best
