"""Refuses settings whose arrays this machine's memory cannot hold."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import keras

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.layers import InChunks
from keras_dml.machine import machine_memory
from keras_dml.run.batches import batch_rows
from keras_dml.run.compiling import backbone_of

FLOAT, INTEGER = 4, 8
GIGABYTE = 1e9


class Need(NamedTuple):
    """An array of a training, the settings that say its size, and the size."""

    what: str
    settings: str
    size: int


def check_memory(config: RunConfig, manifest: Manifest) -> None:
    """Raises if a single array of a training is larger than the memory.

    A training that passes may still need more than there is.
    `check_activations` knows the network.

    Args:
        config: The settled configuration.
        manifest: The training images.

    Raises:
        UsageError: Names the array, its settings and its size.
    """
    _check(_needs(config, manifest))


def check_activations(
    config: RunConfig, manifest: Manifest, trainer: keras.Model
) -> None:
    """Raises if what a layer makes of a batch is larger than the memory.

    Args:
        config: The settled configuration.
        manifest: The training images.
        trainer: The model that trains.

    Raises:
        UsageError: Names the layer, the settings and the size.
    """
    rows, backbone = batch_rows(manifest, config), backbone_of(trainer)
    if backbone is None:
        # Its features are computed once, as in an evaluation.
        return
    settings = "`sampling.batch_size`, `sampling.embed_batch`"
    if isinstance(backbone, InChunks):
        rows, backbone = min(rows, backbone.chunk_size), backbone.layer
    network = getattr(backbone, "part", backbone)
    _check(
        Need(
            f"What the layer {layer.name!r} makes of {rows:,} images",
            f"{settings} or `data.image_size`",
            rows * math.prod(shape[1:]) * FLOAT,
        )
        for layer in getattr(network, "layers", ())
        for shape in _shapes(layer)
    )


def _check(needs: Iterable[Need]) -> None:
    memory = machine_memory()
    for need in needs:
        if need.size > memory:
            raise UsageError(
                f"{need.what} takes {need.size / GIGABYTE:,.0f} GB, and this "
                f"machine has {memory / GIGABYTE:,.0f} GB. Lower "
                f"{need.settings}."
            )


def _shapes(layer: keras.layers.Layer) -> Iterator[tuple[int, ...]]:
    """Yields the shapes of the outputs of a layer, where they are known."""
    try:
        outputs = keras.tree.flatten(layer.output)
    except AttributeError:
        # It is no part of a functional model.
        return
    for output in outputs:
        if None not in output.shape[1:]:
            yield output.shape


def _needs(config: RunConfig, manifest: Manifest) -> Iterator[Need]:
    data, dim = config.data, config.model.dim
    rows, classes = batch_rows(manifest, config), manifest.num_classes
    tested = config.evaluation.batch_size
    for name, key, count, side in (
        ("training", "sampling", rows, data.train_size),
        ("test", "evaluation", tested, data.image_size),
    ):
        yield Need(
            f"A batch of {count:,} {name} images of {side} pixels a side",
            f"`{key}.batch_size` or `data.image_size`",
            count * (side or 0) ** 2 * (data.channels or 1) * FLOAT,
        )
    steps = config.sampling.steps_per_epoch or 1
    yield Need(
        f"The list of {steps:,} batches of {rows:,} images",
        "`sampling.steps_per_epoch` or `sampling.batch_size`",
        steps * rows * INTEGER,
    )
    centers = config.model.proxies.centers
    yield Need(
        f"The proxies of {classes:,} classes, {centers} centers of {dim:,} "
        "numbers each,",
        "`model.dim` or `model.proxies.centers`",
        classes * centers * dim * FLOAT,
    )
    remembered = config.model.proxies.sample_aware.get("memory_size")
    if type(remembered) is int:
        yield Need(
            f"A memory of {remembered:,} embeddings",
            "`memory_size` of `model.proxies.sample_aware`",
            remembered * dim * FLOAT,
        )
    for term in config.loss:
        if term.memory is not None:
            yield Need(
                f"A memory of {term.memory.size:,} embeddings",
                "`memory.size` of the loss",
                term.memory.size * (dim + rows) * FLOAT,
            )
