"""Models that share the layers of an embedder, with another input or output."""

import weakref

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import EmbeddingHead, InChunks
from keras_dml.models.folding import fold_batch_norm
from keras_dml.models.pooling import check_k

_POOLED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def with_image_size(
    embedder: keras.Model,
    image_size: int,
    until: str = "head",
    fold: bool = False,
    chunk_size: int | None = None,
    with_maps: bool = False,
) -> keras.Model:
    """Returns the network from an image of another size to a layer's output.

    Args:
        embedder: Result of `build_embedder` with `any_size=True`.
        image_size: Integer, the side of the square images.
        until: Name of the last layer. Defaults to `"head"`.
        fold: Whether to fold batch normalization that does not change into
            convolutions, which makes training faster. Defaults to `False`.
        chunk_size: Number of images that the backbone takes at once in
            training, see `InChunks`. Defaults to `None`, all of a batch.
        with_maps: Whether the model also returns what the backbone gives to
            the pooling. Defaults to `False`.

    Returns:
        A model that shares the layers of `embedder`.

    Raises:
        UsageError: If the pooling averages more activations than images of
            this size have.

    Example:

    ```python
    embedder = build_embedder("mobilenet_v2", (192, 192, 3), any_size=True)
    smaller = with_image_size(embedder, 128)
    ```
    """
    channels = embedder.input_shape[-1]
    x = image = keras.Input(
        (image_size, image_size, channels), dtype="float32", name="image"
    )
    for layer in embedder.layers[1:]:
        if fold and layer.name == "backbone":
            layer = fold_batch_norm(layer)
        if chunk_size is not None and layer.name == "backbone":
            layer = InChunks(layer, chunk_size, name="backbone")
        x = layer(x)
        if layer.name == "backbone":
            maps = x
            check_k(
                embedder.get_layer("pooling"),
                maps.shape,
                f"positions in images of {image_size} pixels",
            )
        if layer.name == until:
            break
    outputs = [x, maps] if with_maps else x
    return keras.Model(image, outputs, name="embedder")


def pooled_features(embedder: keras.Model) -> keras.Model:
    """Returns the network from an image to the features before the head.

    With pretrained weights these features are the baseline to beat.

    Args:
        embedder: Result of `build_embedder`.

    Returns:
        A model that shares the layers of `embedder`; the same at every call.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> pooled_features(embedder).output_shape
    (None, 128)
    """
    if embedder not in _POOLED:
        _POOLED[embedder] = keras.Model(
            embedder.inputs[0], embedder.get_layer("pooling").output
        )
    return _POOLED[embedder]


def keep_features(embedder: keras.Model) -> keras.Model:
    """Returns the embedder whose embeddings are the features before the head.

    Args:
        embedder: Result of `build_embedder`.

    Returns:
        A model with the layers of `embedder`, but a "head" that changes
        nothing. The embeddings have as many numbers as the features.
        `build_trainer` and `cut_embedder` refuse it.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> keep_features(embedder).output_shape
    (None, 128)
    """
    identity = keras.layers.Identity(dtype="float32", name="head")
    return _with_head(embedder, identity)


def cut_embedder(embedder: keras.Model, dim: int) -> keras.Model:
    """Returns the embedder of the first values of an embedding alone.

    Its head is as small, and the embeddings have length 1 if those of
    `embedder` do. An embedder trained for it retrieves well with a prefix, see
    `keras_dml.losses.Matryoshka`.

    Args:
        embedder: Result of `build_embedder`.
        dim: Number of values to keep.

    Returns:
        A model that shares all layers of `embedder` but the "head".

    Raises:
        UsageError: If the embeddings are the features, see `keep_features`.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> cut_embedder(embedder, 4).output_shape
    (None, 4)
    """
    return _with_head(embedder, embedding_head(embedder).cut(dim))


def embedding_head(embedder: keras.Model) -> EmbeddingHead:
    """Returns the layer that makes the embeddings.

    Args:
        embedder: Result of `build_embedder`.

    Raises:
        UsageError: If the embeddings are the features, see `keep_features`.
    """
    head = embedder.get_layer("head")
    if not isinstance(head, EmbeddingHead):
        raise UsageError(
            "`embedder` must have an `EmbeddingHead`, which `keep_features` "
            f"leaves out. Received: {head!r} as the head. Give the embedder "
            "that the features were kept of."
        )
    return head


def _with_head(embedder, head):
    x = head(embedder.get_layer("pooling").output)
    if embedder.layers[-1].name == "unit":
        x = keras.layers.UnitNormalization(dtype="float32", name="unit")(x)
    return keras.Model(embedder.inputs[0], x, name="embedder")
