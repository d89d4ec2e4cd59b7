"""The description of a backbone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras


@dataclass(frozen=True)
class Backbone:
    """A network without its classifier, and the input that it expects.

    Attributes:
        builder: Function of `input_shape` and `weights` (`None` for random
            ones, or the value of `pretrained`) that returns a model with 4D
            features, with tokens `(batch, tokens, channels)`, or with pooled
            features. It must not preprocess: the embedder does.
        preprocessing: Mode of `ImagePreprocessing` that the network expects.
        image_size: Side in pixels of the images it was designed for.
        min_image_size: Smallest side in pixels that it accepts.
        pretrained: Name of its published weights, or `"none"`.
        rgb: Whether gray images are repeated to three channels.
        paper: Where it was published.
        checkpoint: Address of published weights that
            `keras-dml convert-weights` must convert first, or `""`.
        scale: `scale` of `ImagePreprocessing`.
        offset: `offset` of `ImagePreprocessing`.
        fixed_size: Whether it accepts images of `image_size` only.
        class_token: Whether the first token is a class token.
        prefix_tokens: How many tokens come before the patches, the class
            token and registers among them.
        pooled_builder: As `builder`, for the features as the network itself
            pools them, where it gives tokens otherwise; or `None`.
    """

    builder: Callable[..., keras.Model]
    preprocessing: str
    image_size: int
    min_image_size: int
    pretrained: str
    rgb: bool
    paper: str
    checkpoint: str = ""
    scale: float | Sequence[float] = 1.0
    offset: float | Sequence[float] = 0.0
    fixed_size: bool = False
    class_token: bool = False
    prefix_tokens: int = 0
    pooled_builder: Callable[..., keras.Model] | None = None
