"""Chooses the validation classes of each fold of a cross-validation."""

import numpy as np

from keras_dml.checks import integer_at_least, one_of, require
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import as_label_sets

SPLITS = ("random", "contiguous")


def fold_classes(
    labels, folds: int, fold: int, split: str = "random", seed: int = 0
) -> np.ndarray:
    """Chooses the classes that validate in one fold.

    With `split="random"` the classes are shuffled and cut into `folds` parts
    whose sizes differ by one at most; every class validates once. With
    `split="contiguous"` fold `p` trains on `C - floor(C / folds)` classes,
    which start at `floor(p C / folds)` and wrap around the end of the list.
    The classes after them validate. If `folds` does not divide `C`, some
    classes never validate.

    Args:
        labels: Integer array `(n,)`, the training images' labels, or boolean
            matrix `(n, classes)`.
        folds: Integer, at least 2.
        fold: Integer, from 0 to `folds - 1`.
        split: `"random"` or `"contiguous"`. Defaults to `"random"`.
        seed: Non-negative integer that seeds the shuffling. Use the same
            seed for all folds of a cross-validation. Defaults to `0`.

    Returns:
        Sorted array of the labels that validate.

    Raises:
        UsageError: If `folds`, `fold` or `split` is out of range, or a fold
            would have fewer than two classes.

    Example:

    >>> fold_classes(range(100), 4, 1, "contiguous").tolist()[:3]
    [0, 1, 2]

    Reference:
        Musgrave et al., "A Metric Learning Reality Check", 2020, section 3.2
        (contiguous folds).
    """
    sets = as_label_sets(labels, len(labels), "labels")
    classes = np.unique(sets.values)
    count = len(classes)
    one_of("split", split, SPLITS)
    integer_at_least("folds", folds, 2)
    require(0 <= fold < folds, "fold", f"from 0 to {folds - 1}", fold)
    if count < 2 * folds:
        raise UsageError(
            f"{folds} folds need at least {2 * folds} training classes, two "
            f"to validate in each. Received: {count} classes. Use at most "
            f"{count // 2} folds."
        )
    if split == "contiguous":
        size = count // folds
        first = fold * count // folds + (count - size)
        return np.sort(classes[(first + np.arange(size)) % count])
    shuffled = np.random.default_rng(seed).permutation(classes)
    return np.sort(np.array_split(shuffled, folds)[fold])
