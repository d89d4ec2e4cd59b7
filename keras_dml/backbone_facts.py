"""Reads the facts of each backbone from `configs/backbones.yaml`."""

import dataclasses
import functools
import importlib.resources
from collections.abc import Mapping
from typing import Any

import yaml


@dataclasses.dataclass(frozen=True)
class BackboneFacts:
    """The facts of a network without its classifier, before it is built.

    Attributes:
        name: Its name.
        about: A sentence that says what it is good for.
        builder: The function that builds it, as `module:function`.
        preprocessing: Mode of `ImagePreprocessing` that it expects.
        paper: The publication that introduced it.
        image_size: Side in pixels of the images it was designed for. Defaults
            to `224`.
        min_image_size: Smallest side in pixels that it accepts. Defaults to
            `32`.
        rgb: Whether gray images are repeated to three channels. Defaults to
            `True`.
        pretrained: Name of its published weights, or `"none"`. Defaults to
            `"imagenet"`.
        checkpoint: Address of published weights that must be converted first,
            or `""`. Defaults to `""`.
        any_size: Whether its layers are the same for images of every size.
            Defaults to `True`.
        gigamacs: Billions of multiplications for an image of `image_size`, to
            guess how long a training takes. Defaults to `4.0`.
        arguments: Further arguments of `builder`. Defaults to none.
    """

    name: str
    about: str
    builder: str
    preprocessing: str
    paper: str
    image_size: int = 224
    min_image_size: int = 32
    rgb: bool = True
    pretrained: str = "imagenet"
    checkpoint: str = ""
    any_size: bool = True
    gigamacs: float = 4.0
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@functools.cache
def known_backbones() -> dict[str, BackboneFacts]:
    """Returns the facts of all backbones by name.

    Example:

    >>> list(known_backbones())[:2]
    ['small_cnn', 'resnet50']
    """
    file = importlib.resources.files("keras_dml.configs") / "backbones.yaml"
    entries = yaml.safe_load(file.read_text("utf-8"))
    return {
        name: BackboneFacts(name=name, **entry)
        for name, entry in entries.items()
    }


def starts_from_weights(backbone: str, weights: str = "auto") -> bool:
    """Returns whether a backbone starts from weights, not random numbers.

    Args:
        backbone: Its name. A backbone that is not in `configs/backbones.yaml`,
            such as `"hub:PRESET"`, has published weights.
        weights: `"none"`, `"auto"` for published weights if they exist, or
            the name or file of other weights. Defaults to `"auto"`.

    Example:

    >>> starts_from_weights("small_cnn"), starts_from_weights("resnet50")
    (False, True)
    """
    if weights == "auto":
        facts = known_backbones().get(backbone)
        return facts is None or facts.pretrained != "none"
    return weights != "none"
