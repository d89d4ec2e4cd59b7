"""Describes backbones, including any Keras model as a backbone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import NestedNetwork


@dataclass(frozen=True)
class Backbone:
    """A network without its classifier, and the input that it expects.

    Attributes:
        builder: Function of `input_shape` and `weights` (`None` for random
            weights, or the value of `pretrained`) that returns a model with
            4D features, with tokens `(batch, tokens, channels)`, or with
            pooled features. It must not preprocess: the embedder does.
        preprocessing: Mode of `ImagePreprocessing` that the network expects.
        image_size: Side in pixels of the images it was designed for.
        min_image_size: Smallest side in pixels that it accepts.
        pretrained: Name of its published weights, or `"none"`.
        rgb: Whether to repeat gray images to three channels.
        paper: The publication.
        checkpoint: Address of published weights that
            `keras-dml convert-weights` must convert first, or `""`.
        scale: `scale` of `ImagePreprocessing`.
        offset: `offset` of `ImagePreprocessing`.
        fixed_size: Whether it accepts images of `image_size` only.
        any_size: Whether its layers are the same for images of every size, so
            that one network can take several sizes.
        class_token: Whether the first token is a class token.
        prefix_tokens: How many tokens come before the patches, the class
            token and registers among them.
        pooled_builder: Like `builder`, but returns a model with the features
            that the network itself pools from its tokens; `None` for a
            network without such a pooling.

    Example:

    >>> from keras_dml.models import get_backbone
    >>> facts = get_backbone("mobilenet_v2")
    >>> facts.preprocessing, facts.image_size, facts.pretrained
    ('tf', 224, 'imagenet')
    """

    builder: Callable[..., keras.Model] = field(repr=False)
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
    any_size: bool = True
    class_token: bool = False
    prefix_tokens: int = 0
    pooled_builder: Callable[..., keras.Model] | None = field(
        default=None, repr=False
    )


def custom_backbone(
    model: keras.Model,
    preprocessing: str = "none",
    *,
    class_token: bool = False,
    prefix_tokens: int = 0,
    scale: float | Sequence[float] = 1.0,
    offset: float | Sequence[float] = 0.0,
) -> Backbone:
    """Describes a Keras model as a backbone, for `build_embedder`.

    The embedder uses the model itself, not a copy: training changes it. Only
    `batch_norm="frozen_statistics"` trains a clone, if there is batch
    normalization.

    Args:
        model: A model from one batch of images to features
            `(batch, height, width, channels)`, tokens
            `(batch, tokens, channels)`, or pooled features
            `(batch, channels)`, which need `pooling="none"`. A subclassed
            model must be registered with Keras and built.
        preprocessing: Mode of `ImagePreprocessing`. Defaults to `"none"`: the
            model takes values in 0..255.
        class_token: Whether the first token is a class token. Defaults to
            `False`.
        prefix_tokens: How many tokens come before the patches, the class
            token among them. Defaults to `0`, or `1` with a class token.
        scale: For `preprocessing="affine"`. Defaults to `1.0`.
        offset: For `preprocessing="affine"`. Defaults to `0.0`.

    Raises:
        UsageError: If `model` is not a model with one input, the images, and
            one output.

    Example:

    ```python
    vit = keras.saving.load_model("my_vit.keras")
    backbone = custom_backbone(vit, "tf", class_token=True)
    embedder = build_embedder(
        backbone, (224, 224, 3), dim=64, pooling="class_token"
    )
    ```
    """
    if not isinstance(model, keras.Model):
        raise UsageError(
            "`backbone` must be a Keras model, or what `custom_backbone` "
            f"makes of one. Received: {model!r}"
        )
    shape = _input_shape(model)
    size = shape[1] if shape is not None else None
    return Backbone(
        builder=lambda input_shape, weights=None: _nested(model, input_shape),
        preprocessing=preprocessing,
        scale=scale,
        offset=offset,
        image_size=size or 224,
        min_image_size=size or 1,
        fixed_size=size is not None,
        pretrained="none",
        rgb=shape is None or shape[-1] != 1,
        paper="a given network",
        class_token=class_token,
        prefix_tokens=max(prefix_tokens, int(class_token)),
    )


def _input_shape(model):
    """Returns the shape of the images; `None` if the model has no input yet."""
    try:
        inputs = model.inputs
    except (AttributeError, ValueError):
        return None
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        raise UsageError(
            "`backbone` must have one input, images of shape (batch, height, "
            f"width, channels). Received: {model.name!r} with inputs of the "
            f"shapes {[tuple(x.shape) for x in inputs]}"
        )
    if len(model.outputs) != 1:
        raise UsageError(
            "`backbone` must have one output, the features. Received: "
            f"{model.name!r} with {len(model.outputs)} outputs"
        )
    return inputs[0].shape


def _nested(model, input_shape):
    """Returns the model under the name "backbone"."""
    shape = _input_shape(model)
    if shape is not None and shape[-1] not in (None, input_shape[-1]):
        raise UsageError(
            f"`image_shape` must have {shape[-1]} channels, as {model.name!r} "
            f"takes images. Received: {input_shape[-1]} channels"
        )
    if isinstance(model, keras.Sequential):
        if not model.built:
            model.build((None, *input_shape))
    elif not type(model).__module__.startswith("keras."):
        return NestedNetwork(model, name="backbone")
    # The input and the output may be in a list or a dict.
    return keras.Model(model.inputs[0], model.outputs[0], name="backbone")
