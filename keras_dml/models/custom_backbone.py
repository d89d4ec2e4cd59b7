"""Any Keras model as a backbone."""

from collections.abc import Sequence

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import NestedNetwork
from keras_dml.models.backbone import Backbone


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

    The embedder uses the model itself, not a copy: training trains it.

    Args:
        model: Takes one batch of images and gives features
            `(batch, height, width, channels)`, tokens
            `(batch, tokens, channels)`, or pooled features
            `(batch, channels)`, for which the pooling is `"none"`. A
            subclassed model must be registered with Keras and built.
        preprocessing: Mode of `ImagePreprocessing`. Defaults to `"none"`: the
            model takes values in 0..255.
        class_token: Whether the first token is a class token. Defaults to
            `False`.
        prefix_tokens: How many tokens come before the patches, the class
            token among them. Defaults to `0`, or `1` with a class token.
        scale: For `preprocessing="affine"`. Defaults to `1.0`.
        offset: For `preprocessing="affine"`. Defaults to `0.0`.

    Raises:
        UsageError: If `model` is no model with one input, images.

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
    """Returns the shape of the images, `None` if a model has none yet."""
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
    return inputs[0].shape


def _nested(model, input_shape):
    """Returns the model under the name "backbone"."""
    if isinstance(model, keras.Sequential):
        if not model.built:
            model.build((None, *input_shape))
        return keras.Model(model.inputs[0], model.outputs[0], name="backbone")
    own_class = not type(model).__module__.startswith("keras.")
    if own_class or isinstance(model.input, dict):
        return NestedNetwork(model, name="backbone")
    return keras.Model(model.input, model.output, name="backbone")
