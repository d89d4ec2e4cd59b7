"""Facts about the image networks of keras-hub, by class.

keras-hub does not state how many tokens of an output are not patches, nor the
preprocessing of a network without an image converter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

Preprocessing = tuple[str, Any, Any]

IMAGENET: Preprocessing = ("torch", 1.0, 0.0)
HALF: Preprocessing = ("tf", 1.0, 0.0)


def affine(mean, deviation) -> Preprocessing:
    """Returns the preprocessing that standardizes values in 0..255."""
    pairs = list(zip(mean, deviation, strict=True))
    scale = [1 / (255 * d) for _, d in pairs]
    return ("affine", scale, [-m / d for m, d in pairs])


# https://github.com/openai/CLIP/blob/main/clip/clip.py
CLIP = affine(
    (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
)


@dataclass(frozen=True)
class HubFamily:
    """Facts about the networks of one class.

    Attributes:
        preprocessing: Mode, scale and offset of `ImagePreprocessing` that the
            authors document.
        prefix_tokens: Function of the network that returns how many tokens
            come before the patches; `None` if the output has no tokens.
        class_token: Function of the network that returns whether the first
            token is the class token.
        flexible: Whether the network can be built for other image sizes with
            the same weights.
        output_layer: For a network that pools its tokens, the attribute that
            holds the layer with the tokens as output; else `None`.
    """

    preprocessing: Preprocessing = IMAGENET
    prefix_tokens: Callable[[keras.Model], int] | None = None
    class_token: Callable[[keras.Model], bool] = lambda network: False
    flexible: bool = False
    output_layer: str | None = None


def _with_registers(network):
    return 1 + network.num_register_tokens


def _always(network):
    return True


def _class_token_if_used(network):
    return bool(network.use_class_token)


FAMILIES = {
    "DINOV2Backbone": HubFamily(
        prefix_tokens=_with_registers, class_token=_always, flexible=True
    ),
    "DINOV3Backbone": HubFamily(
        prefix_tokens=_with_registers, class_token=_always, flexible=True
    ),
    "ViTBackbone": HubFamily(
        HALF,
        prefix_tokens=lambda network: int(network.use_class_token),
        class_token=_class_token_if_used,
    ),
    # The second token is the distillation token.
    "DeiTBackbone": HubFamily(
        prefix_tokens=lambda network: 2, class_token=_always
    ),
    "SigLIPVisionEncoder": HubFamily(
        HALF,
        prefix_tokens=lambda network: 0,
        output_layer="post_layer_norm",
    ),
    "CLIPVisionEncoder": HubFamily(
        CLIP, prefix_tokens=lambda network: 1, class_token=_always
    ),
    "MetaCLIP2VisionEncoder": HubFamily(
        CLIP, prefix_tokens=lambda network: 1, class_token=_always
    ),
    "SwinTransformerBackbone": HubFamily(prefix_tokens=lambda network: 0),
}


def family_of(network: keras.Model) -> HubFamily:
    """Returns the facts about the class of a network.

    Args:
        network: Image network of keras-hub.
    """
    own = has_own_layers(network)
    return FAMILIES.get(type(network).__name__, HubFamily(flexible=not own))


def has_own_layers(network: keras.Model) -> bool:
    """Returns whether a network has layers that do not come from Keras."""
    return any(
        not type(layer).__module__.startswith("keras.")
        for layer in network._flatten_layers(include_self=False)
    )
