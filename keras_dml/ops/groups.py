"""Groups of classes, of one level or of several."""

import numpy as np
from keras import ops

from keras_dml.checks import require
from keras_dml.ops.labels import within_classes


def checked_groups(groups) -> list[list[int]]:
    """Returns the groups of classes as one list for each level, from 0 on.

    Args:
        groups: Integers `(classes,)`, the group of each class; or `(levels,
            classes)`.

    Raises:
        UsageError: If they are no integers of such a shape.

    Example:

    >>> checked_groups([7, 7, 3])
    [[1, 1, 0]]
    """
    try:
        levels = np.atleast_2d(np.asarray(groups))
    except ValueError:
        levels = np.zeros(())
    require(
        levels.ndim == 2 and levels.dtype.kind in "iu" and levels.size > 0,
        "groups",
        "the group of each class, integers, or a list of such lists, one for "
        "each level",
        groups,
    )
    return [
        np.unique(level, return_inverse=True)[1].tolist() for level in levels
    ]


def groups_of(labels, groups: list[list[int]], loss: str):
    """Returns the group of each label at every level.

    Args:
        labels: Integer tensor `(rows,)`.
        groups: Result of `checked_groups`.
        loss: Name of the loss, for the error.

    Returns:
        Int32 tensor `(levels, rows)`.

    Raises:
        ValueError: If a label has no group.
    """
    count = len(groups[0])
    labels = within_classes(
        ops.cast(labels, "int32"),
        count,
        f"`y_true` of the loss {loss} must lie between 0 and {count - 1}, for "
        f"`groups` holds {count} classes",
        "Give `groups` an entry for each class.",
    )
    return ops.take(ops.convert_to_tensor(groups, "int32"), labels, axis=1)
