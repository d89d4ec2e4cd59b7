"""Learning rates that fall from the output of a network to its input."""

import re
from collections.abc import Collection, Sequence

import keras

from keras_dml.optimizers.layer_blocks import layer_blocks


def layer_decay(network: keras.layers.Layer, decay: float) -> dict[str, float]:
    """The factor of the learning rate of every variable of a network.

    `factor = decay^d`, where `d` is the number of blocks between the block of
    the variable and the output: the last block has the factor 1, the patch,
    position and class embeddings of a transformer have the smallest. See
    `layer_blocks` for what a block is. The published recipes count the
    classifier as a layer too, so that their last block has the factor
    `decay`; divide the learning rate of the backbone for the same.

    Args:
        network: Built model or layer.
        decay: Float in (0, 1]; 0.65 to 0.9 are usual for transformers.

    Returns:
        Dict of variable paths to factors, from the input to the output.

    Raises:
        ValueError: If `decay` is outside its range, or two variables of
            different blocks have one path.

    Example:

    ```python
    factors = layer_decay(embedder.get_layer("backbone"), 0.75)
    ```

    Reference:
        Clark et al., "ELECTRA", 2020, table 9; Bao et al., "BEiT", 2022.
    """
    _check_decay(decay)
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
    network: keras.layers.Layer,
    decay: float,
    others: Collection[str] = (),
) -> dict[str, tuple[int, float]]:
    """Rules for `PerVariable`, one for each block but the last.

    The rules match whole paths, exclude each other, and match trainable
    variables only: freeze first. What no rule matches has the factor 1.

    Args:
        network: Built model or layer.
        decay: As for `layer_decay`.
        others: Starts of the paths of variables outside of `network`, such as
            `"head/"`, that no rule may match. Defaults to `()`.

    Returns:
        Dict of regular expressions to the number of the block, counted from
        the input, and its factor.

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


def _check_decay(decay):
    if not 0 < decay <= 1:
        raise ValueError(
            f"`decay` must be in (0, 1]. Received: decay={decay!r}"
        )


def _rule(paths: Sequence[str], rest: Sequence[str]) -> str:
    """A short pattern that matches all of `paths` and nothing of `rest`.

    Nor anything that goes on like an entry of `rest`.
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
