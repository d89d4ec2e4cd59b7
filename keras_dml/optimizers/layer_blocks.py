"""The blocks of a network, from its input to its output."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_dml.layers import NestedNetwork


def layer_blocks(network: keras.layers.Layer) -> list[list[Any]]:
    """The variables of a network, block by block.

    A block is what lies between two layers that every path from the input to
    the output goes through: a residual unit, or the branches up to where they
    are joined. A layer that holds two or more layers of one class with layers
    of their own, as the encoder of a transformer does, is opened: each of
    these is a block. Layers without matrices or kernels, as normalization,
    belong to the block before them. Nested models are opened as well.

    Args:
        network: Built model or layer.

    Returns:
        List of the blocks that have variables, each a list of its variables.

    Example:

    >>> x = keras.Input((4,))
    >>> y = keras.layers.Dense(3)(keras.layers.Dense(2)(x))
    >>> [len(block) for block in layer_blocks(keras.Model(x, y))]
    [2, 2]
    """
    blocks: list[list[Any]] = []
    for part in _parts(network):
        if not part:
            continue
        flat = all(len(variable.shape) < 2 for variable in part)
        if blocks and (flat or _is_flat(blocks[-1])):
            blocks[-1].extend(part)
        else:
            blocks.append(list(part))
    return blocks


def _is_flat(block):
    return all(len(variable.shape) < 2 for variable in block)


def _parts(layer):
    """Lists of variables in the order in which an image meets them."""
    if isinstance(layer, NestedNetwork):
        return _parts(layer.part())
    if isinstance(layer, keras.Sequential):
        return [part for one in layer.layers for part in _parts(one)]
    if hasattr(layer, "_nodes_by_depth"):
        return _parts_of_graph(layer)
    children = layer._flatten_layers(include_self=False, recursive=False)
    children = [child for child in children if child.weights]
    if not _holds_a_stack(children):
        return [layer.weights]
    inside = {id(one) for child in children for one in child.weights}
    own = [one for one in layer.weights if id(one) not in inside]
    return [own, *(part for child in children for part in _parts(child))]


def _holds_a_stack(children: Sequence[Any]) -> bool:
    """Whether two of them are blocks: of one class, with layers inside."""
    classes = [
        type(child)
        for child in children
        if child._flatten_layers(include_self=False, recursive=False)
    ]
    return len(set(classes)) < len(classes)


def _parts_of_graph(model):
    """Cuts the graph where a single tensor passes."""
    nodes = [
        node
        for depth in sorted(model._nodes_by_depth, reverse=True)
        for node in model._nodes_by_depth[depth]
    ]
    position = {id(node): number for number, node in enumerate(nodes)}
    last_use = list(range(len(nodes)))
    for number, node in enumerate(nodes):
        for parent in node.parent_nodes:
            if id(parent) in position:
                user = position[id(parent)]
                last_use[user] = max(last_use[user], number)
    parts: list[list[Any]] = []
    branches: list[Any] = []
    seen: set[int] = set()
    reach = 0
    for number, node in enumerate(nodes):
        layer = node.operation
        new = id(layer) not in seen and getattr(layer, "weights", [])
        seen.add(id(layer))
        if reach <= number:
            # Nothing passes by this layer: it ends a block.
            inner = _parts(layer) if new else []
            if len(inner) == 1:
                inner = [branches + inner[0]]
            elif branches:
                inner = [branches, *inner]
            parts.extend(inner)
            branches = []
        elif new:
            branches = branches + list(layer.weights)
        reach = max(reach, last_use[number])
    return [*parts, branches]
