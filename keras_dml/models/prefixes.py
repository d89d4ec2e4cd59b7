"""Heads on the prefixes of an embedding, as Matryoshka learning has them."""

from collections.abc import Callable
from typing import Any

import keras

from keras_dml.models.head import Head, unused_input
from keras_dml.models.head_options import HeadOptions

_SIDE_BY_SIDE = "prefixes"
_PREFIX = "prefix_"


def _first(embedding: Any, size: int) -> Any:
    return embedding[:, :size]


def connect_head(
    head: Head,
    embedding: keras.KerasTensor,
    label: keras.KerasTensor,
    num_classes: int,
    options: HeadOptions,
    prefix: Callable[[Any, int], Any] = _first,
) -> keras.KerasTensor:
    """Applies a head to an embedding, and one more to each of its prefixes.

    The heads of prefixes are models in the trainer, so that their layers have
    the same names, and their variables the same paths, as those of the whole
    embedding. Optimizers and callbacks find them by these.

    Args:
        head: The head that the loss needs.
        embedding: Float32 `(batch, dim)`.
        label: Int32 `(batch,)`.
        num_classes: Number of classes in training.
        options: `HeadOptions`; `prefixes` are the sizes of the prefixes.
        prefix: `EmbeddingHead.prefix` of the layer that makes the embedding.
            Defaults to a function that takes the first values as they are.

    Returns:
        The `y_pred` of the loss; with prefixes that of
        `keras_dml.losses.Matryoshka`: along axis 1 what the head gives for
        each prefix, and at the end for the whole embedding.
    """
    whole = head.connect(embedding, label, num_classes, options)
    if not options.prefixes:
        return whole
    outputs = []
    for size in options.prefixes:
        own = unused_input((size,)), unused_input((), dtype="int32")
        part = head.connect(own[0], own[1], num_classes, options.renewed())
        network = keras.Model(own, part, name=f"{_PREFIX}{size}")
        outputs.append(network((prefix(embedding, size), label)))
    return keras.layers.Concatenate(1, dtype="float32", name=_SIDE_BY_SIDE)(
        [*outputs, whole]
    )


def widths_of(trainer: keras.Model) -> list[int]:
    """Returns what `keras_dml.losses.Matryoshka` takes as `widths`.

    Args:
        trainer: A model whose output `connect_head` made, with prefixes.
    """
    parts = trainer.get_layer(_SIDE_BY_SIDE).input
    return [part.shape[1] for part in parts]


def proxies_of(trainer: keras.Model, dim: int) -> dict[int, keras.layers.Layer]:
    """Returns the proxies of each prefix, and of the whole embedding, by size.

    Args:
        trainer: Result of `build_trainer` whose loss has proxies.
        dim: Size of the whole embedding.
    """
    heads = {dim: trainer} | {
        int(layer.name.removeprefix(_PREFIX)): layer
        for layer in trainer.layers
        if layer.name.startswith(_PREFIX)
    }
    return {size: head.get_layer("proxies") for size, head in heads.items()}
