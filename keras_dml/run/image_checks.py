"""Checks that the images of a run can train, validate and test."""

import numpy as np

from keras_dml import distribute, former, losses
from keras_dml.config import RunConfig, recipe_names
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.roles import has_gallery, query_rows, reference_rows


def check_test(test: Manifest) -> None:
    """Raises if the results would be the same for any embeddings."""
    references = test.select(reference_rows(test.role))
    counts = np.bincount(
        references.label_sets.values, minlength=len(test.class_names)
    )
    asked = test.select(query_rows(test.role)).label_sets.values
    # Without a gallery each query is a reference, which it does not find.
    least = 1 if has_gallery(test.role) else 2
    answered = counts[asked].max(initial=0) >= least
    if np.count_nonzero(counts) > 1 and answered:
        return
    classes = np.count_nonzero(counts)
    found = f"{len(references)} images of {classes} class"
    found += "" if classes == 1 else "es"
    raise UsageError(
        "A run must have at least two test classes, one of them with a query "
        f"and another image to find. Received: {found}"
        + ("" if answered else ", of which no query finds one of its class")
        + ". Of one class alone every image finds its own. Add classes or "
        "images, or let fewer classes train (`data.train_fraction`)."
    )


def check_classes(stage: str, fit: Manifest) -> None:
    """Raises if nothing can be told apart."""
    if fit.num_classes < 2:
        raise UsageError(
            f"Stage `{stage}` must train at least two classes. Received: "
            f"{fit.num_classes}. Add classes, or let more of them train "
            "(`data.train_fraction`, `data.train_classes`)."
        )


def check_validation(stage: str, validation: Manifest | None) -> None:
    """Raises if no image that validates has a reference."""
    if validation is None:
        return
    if np.bincount(validation.label_sets.values).max(initial=0) < 2:
        raise UsageError(
            f"Stage `{stage}` must validate on a class with two images or "
            f"more. Received: {validation.num_classes} validation classes of "
            "one image. Add images of these classes, or use fewer folds "
            "(`data.folds`)."
        )


def check_label_sets(config: RunConfig, train: Manifest) -> None:
    """Raises if a setting needs one label for each image."""
    works = [
        name
        for name, one in losses.LOSSES.items()
        if issubclass(one, losses.PairLoss)
        and one.takes == "embeddings"
        and not one.takes_groups
    ]
    recipes = [name for name in recipe_names() if name in works]
    needs = {
        f"The loss `{term.name}`": "Choose the recipe of a loss that compares "
        "images with each other, for which it is enough that they share a "
        f"label: {', '.join(recipes)}."
        for term in config.loss
        if former.LOSSES.get(term.name, term.name) not in works
    }
    if any(term.memory is not None for term in config.loss):
        needs["`loss.0.memory`"] = "Leave it out."
    if config.evaluation.clustering:
        needs["`evaluation.clustering`"] = "Set it to false."
    if distribute.num_workers() > 1:
        needs["A training on several workers"] = "Use one."
    for what, advice in needs.items():
        row = int(np.argmax(train.labels.sum(axis=1)))
        raise UsageError(
            f"{what} needs one label for each image. Received: images of "
            f"several labels, such as {train.ids[row]} with "
            f"{train.names[row]}. {advice}"
        )
