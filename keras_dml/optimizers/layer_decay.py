"""Learning rates that fall from the output of a network to its input."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import keras

from keras_dml.checks import in_interval


def layer_decay(network: keras.layers.Layer, decay: float) -> dict[str, float]:
    """Returns the factor of the learning rate of every variable of a network.

    `factor = decay^d`, where `d` is the number of blocks between the block of
    the variable and the output: the last block has the factor 1, and the
    patch, position and class embeddings of a transformer have the smallest.
    `layer_blocks` defines the blocks. The published recipes count the
    classifier as a layer too, so that their last block has the factor
    `decay`; multiply the learning rate of the backbone by `decay` for the
    same rates.

    Args:
        network: Built model or layer.
        decay: Float in (0, 1]; 0.65 to 0.9 are usual for transformers.

    Returns:
        Dict of variable paths to factors, from the input to the output.

    Raises:
        ValueError: If `decay` is out of range, or two variables of different
            blocks have the same path.

    Example:

    ```python
    factors = layer_decay(embedder.get_layer("backbone"), 0.75)
    ```

    Reference:
        Clark et al., "ELECTRA", 2020, table 9; Bao et al., "BEiT", 2022.
    """
    in_interval("decay", decay, 0, 1, closed="right")
    blocks = layer_blocks(network)
    factors: dict[str, float] = {}
    for number, block in enumerate(blocks):
        factor = float(decay ** (len(blocks) - 1 - number))
        for variable in block:
            if factors.setdefault(variable.path, factor) != factor:
                raise ValueError(
                    f"Two variables in different blocks are {variable.path!r}. "
                    "Give their layers different names."
                )
    return factors


def layer_decay_rules(
    network: keras.layers.Layer, decay: float, others: Collection[str] = ()
) -> dict[str, tuple[int, float]]:
    """Returns rules for `PerVariable`, one for each block but the last.

    The rules match whole paths, exclude each other, and match trainable
    variables only: freeze layers before the call. Variables without a rule
    have the factor 1.

    Args:
        network: Built model or layer.
        decay: See `layer_decay`.
        others: Prefixes of the paths of variables outside of `network`, such
            as `"head/"`, that no rule may match. Defaults to `()`.

    Returns:
        Dict of regular expressions to pairs: the number of the block, counted
        from the input, and its factor.

    Example:

    ```python
    rules = {
        rule: keras.optimizers.SGD(0.1 * factor, name=f"block_{number}")
        for rule, (number, factor) in layer_decay_rules(network, 0.75).items()
    }
    optimizer = PerVariable(keras.optimizers.SGD(0.1), rules)
    ```
    """
    factors = layer_decay(network, decay)
    trainable = {variable.path for variable in network.trainable_variables}
    rules = {}
    for number, block in enumerate(layer_blocks(network)):
        paths = [one.path for one in block if one.path in trainable]
        if not paths or factors[paths[0]] == 1.0:
            continue
        rest = [*(trainable - set(paths)), *others]
        rules[_rule(paths, rest)] = (number, factors[paths[0]])
    return rules


def _rule(paths: Sequence[str], rest: Sequence[str]) -> str:
    """Returns a short pattern that matches `paths` and no path in `rest`.

    The pattern matches no path that starts with an entry of `rest` either.
    """
    start = _common_start(paths)
    if start and not any(
        other.startswith(start) or start.startswith(other) for other in rest
    ):
        return re.escape(start) + ("" if list(paths) == [start] else ".*")
    branches: dict[str, list[str]] = {}
    for path in paths:
        branches.setdefault(path[: len(start) + 1], []).append(path)
    return "|".join(
        re.escape(branch) if branch == start else _rule(some, rest)
        for branch, some in sorted(branches.items())
    )


def _common_start(paths):
    first, last = min(paths), max(paths)
    pairs = enumerate(zip(first, last, strict=False))
    length = next((i for i, (a, b) in pairs if a != b), len(first))
    return first[:length]


def layer_blocks(network: keras.layers.Layer) -> list[list[Any]]:
    """Groups the variables of a network by block, from input to output.

    A block lies between two layers that every path from the input to the
    output goes through: a residual unit, or the branches up to the layer that
    joins them. The function opens nested models, and layers that hold several
    layers of one class with layers inside, such as the encoder of a
    transformer: each inner layer is a block. Layers without matrices or
    kernels, such as normalization, belong to the block before them.

    Args:
        network: Built model or layer.

    Returns:
        List of blocks; a block is the list of its variables.

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
        if blocks and (_is_flat(part) or _is_flat(blocks[-1])):
            blocks[-1].extend(part)
        else:
            blocks.append(list(part))
    return blocks


def _is_flat(block):
    return all(len(variable.shape) < 2 for variable in block)


def _parts(layer):
    """Lists the variables of each part, from input to output."""
    # A `NestedNetwork` hides the layers of a network from Keras.
    if hasattr(layer, "part"):
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
    """Returns whether two layers of one class have layers inside."""
    classes = [
        type(child)
        for child in children
        if child._flatten_layers(include_self=False, recursive=False)
    ]
    return len(set(classes)) < len(classes)


def _parts_of_graph(model):
    """Cuts the graph at the layers that every path goes through."""
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
                last_use[position[id(parent)]] = number
    parts: list[list[Any]] = []
    branches: list[Any] = []
    seen: set[int] = set()
    reach = 0
    for number, node in enumerate(nodes):
        layer = node.operation
        new = id(layer) not in seen and getattr(layer, "weights", [])
        seen.add(id(layer))
        if reach <= number:
            # No branch bypasses this layer: it ends a block.
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
