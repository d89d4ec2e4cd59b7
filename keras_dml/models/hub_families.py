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
            come before the patches, the class token first; `None` if the
            output has no tokens.
        flexible: Whether the network can be built for other image sizes with
            the same weights.
        output_layer: For a network that pools its tokens, the attribute that
            holds the layer with the tokens as output; else `None`.
    """

    preprocessing: Preprocessing = IMAGENET
    prefix_tokens: Callable[[keras.Model], int] | None = None
    flexible: bool = False
    output_layer: str | None = None


_DINO = HubFamily(
    prefix_tokens=lambda network: 1 + network.num_register_tokens, flexible=True
)
_CLIP = HubFamily(CLIP, lambda network: 1)
FAMILIES = {
    "DINOV2Backbone": _DINO,
    "DINOV3Backbone": _DINO,
    "ViTBackbone": HubFamily(
        HALF, lambda network: int(network.use_class_token)
    ),
    # The second token is the distillation token.
    "DeiTBackbone": HubFamily(IMAGENET, lambda network: 2),
    "SigLIPVisionEncoder": HubFamily(
        HALF, lambda network: 0, output_layer="post_layer_norm"
    ),
    "CLIPVisionEncoder": _CLIP,
    "MetaCLIP2VisionEncoder": _CLIP,
    "SwinTransformerBackbone": HubFamily(IMAGENET, lambda network: 0),
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
