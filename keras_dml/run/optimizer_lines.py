"""Puts the optimizers of a phase into lines that fit a terminal."""

import textwrap
from collections.abc import Iterable

from keras_dml.naming import shortened
from keras_dml.optimizers import OptimizerGroup
from keras_dml.wording import WIDTH, counted


def optimizer_lines(groups: Iterable[OptimizerGroup]) -> str:
    """Returns a short block of lines for each optimizer.

    Args:
        groups: The rows of `group_table`.
    """
    blocks = (
        f"{group.group}: {group.parameters:,} parameters in "
        f"{counted(group.variables, 'variable')}, {_rule(group)}\n"
        f"  {group.optimizer}, learning rate {group.learning_rate:.6g}, "
        f"schedule {group.schedule}\n"
        f"  clipping: {group.clip}; weight decay: {group.decay}"
        for group in groups
    )
    return "\n".join(
        textwrap.fill(
            line,
            WIDTH,
            initial_indent="  ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )
        for block in blocks
        for line in block.split("\n")
    )


def _rule(group: OptimizerGroup) -> str:
    # With `layer_decay` a rule lists many paths.
    return f"rule {shortened(group.rule, 100)}" if group.rule else "no rule"
