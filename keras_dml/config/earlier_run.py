"""Prepares the configuration of an earlier run for changes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keras_dml.backbone_facts import starts_from_weights
from keras_dml.config.derived import underived
from keras_dml.config.flags import EPOCHS, flag_layers
from keras_dml.config.merging import Layer, Merged, flatten
from keras_dml.config.named_items import nested
from keras_dml.config.settings import Settings

EARLIER = "earlier run"
# What stands for weights that a network has published.
_PUBLISHED = ("imagenet", "preset")
STEPS = "sampling.steps_per_epoch"
PHASE_EPOCHS = re.compile(r"stages\.[^.]+\.[^.]+\.epochs")


def with_changes(
    earlier: Mapping[str, Any],
    source: str | None,
    flags: Mapping[str, Any],
    overrides: Settings,
    fed: Iterable[Layer] = (),
    usual_steps: int | None = None,
) -> Merged:
    """Merges changes over the values of a run, and opens what they unsettle.

    A run saves what was derived, and what was settled from images, network and
    minutes. Another `data.image_size` opens the other sizes, and another
    `model.backbone` opens its sizes and published weights. Another length opens
    the refit that the minutes were too few for, and how often a training is
    validated that keeps its last epoch, and ends epochs that minutes made
    longer or shorter; other minutes open the epochs and lift the bound of
    `passes`. What is set as well stays.

    Args:
        earlier: The values of the run's `config.yaml`.
        source: Where the images are now, or `None`.
        flags: Nested mapping of settings.
        overrides: Settings, as for `resolve`.
        fed: What the loss of a flag needs in front of it. Defaults to none.
        usual_steps: The steps of an epoch by the recipe. Defaults to `None`.

    Raises:
        UsageError: As for `Merged` and `flag_layers`.
    """
    merged = Merged([Layer(EARLIER, earlier), underived(earlier, EARLIER)])
    for layer in (*fed, *flag_layers(flags, merged, source)):
        merged.add(layer)
    merged.override(overrides)
    origins = merged.origins
    old, new = flatten(earlier), flatten(merged.values)
    for key, value in _unsettled(old, new, usual_steps):
        if origins.get(key) == EARLIER:
            merged.add(Layer(EARLIER, nested(key, value)))
    return merged


def _unsettled(
    old: Mapping[str, Any], new: Mapping[str, Any], usual_steps: int | None
) -> Iterator[tuple[str, Any]]:
    """Yields settled values that changes unsettle, as they were when open."""
    other_size, other_network = (
        old.get(key) != new.get(key)
        for key in ("data.image_size", "model.backbone")
    )
    if other_size or other_network:
        yield "data.natural_size", None
        yield "data.train_size", None
    resize = old.get("augmentation.resize")
    if other_size and resize == old.get("data.image_size"):
        yield "augmentation.resize", None
    weights = old.get("model.weights")
    random = weights == "none" and not starts_from_weights(
        str(old.get("model.backbone"))
    )
    if other_network and (random or weights in _PUBLISHED):
        yield "model.weights", "auto"
    minutes = new.get("minutes")
    if EPOCHS in old and minutes not in (None, old.get("minutes")):
        yield EPOCHS, None
        yield "passes", None
    lengths = [*filter(PHASE_EPOCHS.fullmatch, old)]
    if any(old.get(key) != new.get(key) for key in ("minutes", *lengths)):
        if old.get("refit", False) is None:
            yield "refit", True
        if old.get("evaluation.select") == "last":
            yield "evaluation.every", None
        if old.get("minutes") is not None and usual_steps is not None:
            steps = old.get(STEPS)
            once = all(old[key] in (1, None) for key in lengths)
            # Only one epoch is shorter than usual.
            if steps and (steps > usual_steps or once):
                yield STEPS, usual_steps
