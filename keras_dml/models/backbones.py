"""Finds backbones by name."""

import importlib
from functools import partial

from keras_dml.backbone_facts import BackboneFacts, known_backbones
from keras_dml.errors import UsageError
from keras_dml.models.backbone import Backbone
from keras_dml.models.hub import PREFIX, hub_backbone
from keras_dml.naming import nearest


def _backbone(facts: BackboneFacts) -> Backbone:
    return Backbone(
        builder=partial(_build, facts),
        preprocessing=facts.preprocessing,
        image_size=facts.image_size,
        min_image_size=facts.min_image_size,
        pretrained=facts.pretrained,
        rgb=facts.rgb,
        paper=facts.paper,
        checkpoint=facts.checkpoint,
        any_size=facts.any_size,
    )


def _build(facts: BackboneFacts, input_shape, weights=None):
    module, _, function = facts.builder.partition(":")
    builder = getattr(importlib.import_module(module), function)
    if module == "keras.applications":
        return builder(
            include_top=False,
            input_shape=input_shape,
            weights=weights,
            **facts.arguments,
        )
    return builder(input_shape, **facts.arguments)


BACKBONES: dict[str, Backbone] = {
    name: _backbone(facts) for name, facts in known_backbones().items()
}


def list_backbones() -> list[str]:
    """Returns the names of all backbones.

    Example:

    >>> list_backbones()[:2]
    ['small_cnn', 'resnet50']
    """
    return list(BACKBONES)


def get_backbone(name: str) -> Backbone:
    """Returns a backbone by its name.

    Args:
        name: One of `list_backbones()`, or `"hub:PRESET"` for a network of
            keras-hub.

    Raises:
        UsageError: If the name is unknown.
        RunError: If a preset of keras-hub could not be downloaded.

    Example:

    >>> get_backbone("small_cnn").builder((28, 28, 1)).output_shape
    (None, 7, 7, 128)
    """
    if name.startswith(PREFIX):
        return hub_backbone(name)
    if name not in BACKBONES:
        raise UsageError(
            f"`backbone` is unknown. Received: {name!r}. Nearest: "
            f"{nearest(name, BACKBONES)}. All: {', '.join(BACKBONES)}, and "
            "`hub:PRESET` for those of keras-hub."
        )
    return BACKBONES[name]
