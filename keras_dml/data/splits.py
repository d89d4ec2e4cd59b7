"""Splits images into training, validation and test, as pure functions.

Labels are an array `(n,)` of integers or strings, or a boolean matrix
`(n, classes)` if an image has several. Whole classes are split: an image with
any class that is held out is held out too, so that training never sees such a
class.
"""

import math
from collections.abc import Sequence

import numpy as np

from keras_dml.checks import in_interval, require
from keras_dml.data.image_tree import composed
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import as_label_sets, has_label

# Of how many images a class must have to be measured well.
_ENOUGH_IMAGES = 5


def class_disjoint(
    labels,
    fraction: float | None = None,
    train_classes: Sequence[str | int] | None = None,
    test_classes: Sequence[str | int] | None = None,
    class_names: Sequence[str] | None = None,
) -> np.ndarray:
    """Assigns whole classes to training and to test.

    By default the first `ceil(C / 2)` classes train. Explicit lists override
    `fraction`. With one list, all other classes go to the other split; with
    two lists, classes in neither list are left out (`""`).

    Of several labels of an image, one in neither list leaves it out;
    otherwise one test class is enough for the test.

    Args:
        labels: Array `(n,)` of integers or strings, or boolean matrix
            `(n, classes)`.
        fraction: Float in (0, 1), the part of the classes that trains, taken
            from the start of the label order. Defaults to one half.
        train_classes: List of class names, or of labels. Defaults to `None`.
        test_classes: List of class names, or of labels. Defaults to `None`.
        class_names: Sequence of strings, the name of every integer label. If
            given, every class must have an image. Defaults to `None`.

    Returns:
        String array `(n,)` of `"train"`, `"test"` or `""`.

    Raises:
        UsageError: If there are fewer than two classes, a class is empty,
            unknown or in both lists, a list is a string, or a split would
            have no class.

    Example:

    >>> class_disjoint([0, 1, 1, 2]).tolist()
    ['train', 'train', 'train', 'test']
    """
    labels = np.asarray(labels)
    present = _present(labels)
    given = () if class_names is None else class_names
    names = {label: str(name) for label, name in enumerate(given)}
    _require_classes(present, names)
    train = _resolve("train_classes", train_classes, present, names)
    test = _resolve("test_classes", test_classes, present, names)
    if train is None and test is None:
        train = present[: _count_of(fraction, len(present))]
    train = np.setdiff1d(present, test) if train is None else train
    test = np.setdiff1d(present, train) if test is None else test
    _require_disjoint(train, test, names)
    split = np.full(len(labels), "", dtype="<U7")
    split[has_label(labels, train)] = "train"
    split[has_label(labels, test)] = "test"
    split[has_label(labels, np.setdiff1d(present, [*train, *test]))] = ""
    return split


def hold_out_classes(
    labels,
    fraction: float = 0.1,
    seed: int = 0,
    least: int = 20,
    max_images: int | None = None,
) -> np.ndarray:
    """Draws the classes whose images validate.

    Draws `max(2, ceil(fraction * C))` of the `C` classes with two images or
    more: a class of one image has no reference. Draws none if `C` is less
    than 2, or if there are fewer than `least` classes in total or 4 with
    several images: at least two of these must train, and of one class alone
    every image finds its own.

    Args:
        labels: Integer array `(n,)`, the training images' labels, or boolean
            matrix `(n, classes)`.
        fraction: Float in (0, 1). Defaults to `0.1`.
        seed: Non-negative integer. Defaults to `0`.
        least: Integer, the smallest number of classes of which some can be
            spared. Defaults to `20`.
        max_images: Integer, the number of images that will be measured, at
            least five of a class: no more than a fifth as many classes are
            drawn. Defaults to `None`, any number.

    Returns:
        Sorted array of the held-out labels.

    Example:

    >>> len(hold_out_classes([*range(30), *range(30)]))
    3
    """
    values = as_label_sets(labels, len(labels), "labels").values
    classes, images = np.unique(values, return_counts=True)
    several = classes[images > 1]
    in_interval("fraction", fraction, 0, 1)
    if len(classes) < least or len(several) < 4:
        return classes[:0]
    count = _ceiling(fraction * len(several))
    if max_images is not None:
        count = min(count, max_images // _ENOUGH_IMAGES)
    count = min(max(2, count), len(several) - 2)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(several, count, replace=False))


def spread_images(labels, max_images: int) -> np.ndarray:
    """Marks images that stand for all, spread evenly over the classes.

    Every class has as many, or all of its images if it has fewer. Of more
    classes than a fifth of `max_images` some are left out.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`, whose
            images are spread evenly over all.
        max_images: Integer, the most images to mark.

    Returns:
        Boolean array `(n,)`.

    Example:

    >>> kept = spread_images([0] * 12 + [1], 10)
    >>> np.flatnonzero(kept).tolist()
    [0, 1, 3, 4, 6, 7, 8, 10, 11, 12]
    """
    labels = np.asarray(labels)
    kept = np.full(len(labels), len(labels) <= max_images)
    if kept.all():
        return kept
    if labels.ndim > 1:
        kept[_spread(np.arange(len(labels)), max_images)] = True
        return kept
    classes, counts = np.unique(labels, return_counts=True)
    chosen = _spread(
        np.arange(len(classes)), max(1, max_images // _ENOUGH_IMAGES)
    )
    sizes = np.arange(counts.max(initial=0) + 1)
    totals = np.minimum(counts[chosen], sizes[:, None]).sum(axis=1)
    most = int(np.flatnonzero(totals <= max_images)[-1])
    for label in classes[chosen]:
        kept[_spread(np.flatnonzero(labels == label), most)] = True
    return kept


def first_half(labels) -> np.ndarray:
    """Marks the images of the first half of the classes, rounded down.

    In the first stage of ProxyNCA++ these images train and the others
    validate.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`.

    Returns:
        Boolean array `(n,)`.

    Raises:
        UsageError: If there are fewer than two classes.

    Example:

    >>> first_half([0, 1, 2, 2]).tolist()
    [True, False, False, False]
    """
    classes = _present(labels)
    _require_classes(classes, {})
    return ~has_label(labels, classes[len(classes) // 2 :])


def some_classes(labels, split, max_classes: int) -> np.ndarray:
    """Marks the images of some classes, for quick trials.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`.
        split: String array `(n,)` of `"train"`, `"test"` or `""`.
        max_classes: Integer, the number of classes to keep in total, chosen as
            `spread_classes` does.

    Returns:
        Boolean array `(n,)`.

    Example:

    >>> some_classes(range(8), ["train"] * 4 + ["test"] * 4, 4).tolist()
    [True, False, False, True, True, False, False, True]
    """
    split = np.asarray(split)
    kept = np.zeros(len(labels), bool)
    for name, chosen in spread_classes(labels, split, max_classes).items():
        kept |= (split == name) & has_label(labels, chosen)
    return kept


def spread_classes(labels, split, max_classes: int) -> dict[str, np.ndarray]:
    """Chooses classes of each split, spread evenly over the label order.

    Each split keeps its share of `max_classes`, but at least two classes.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`.
        split: String array `(n,)` of `"train"`, `"test"` or `""`.
        max_classes: Integer, the number of classes to choose in total.

    Returns:
        The labels that are chosen of `"train"` and of `"test"`.

    Example:

    >>> split = ["train"] * 4 + ["test"] * 4
    >>> spread_classes(range(8), split, 4)["test"].tolist()
    [4, 7]
    """
    labels, split = np.asarray(labels), np.asarray(split)
    total = len(_present(labels[split != ""]))
    chosen = {}
    for name in ("train", "test"):
        present = _present(labels[split == name])
        share = round(max_classes * len(present) / max(total, 1))
        count = min(max(share, 2), len(present))
        chosen[name] = _spread(present, count)
    return chosen


def within_classes(labels, fraction: float = 0.5, seed: int = 0) -> np.ndarray:
    """Splits the images of every class into training and test.

    Training then sees the test classes: this measures no generalization to
    new classes and is meant for sets with too few classes to split by class.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`.
        fraction: Float in (0, 1), the part of a class that trains, rounded
            up. Defaults to `0.5`.
        seed: Non-negative integer. Defaults to `0`.

    Returns:
        String array `(n,)` of `"train"` or `"test"`.

    Example:

    >>> sorted(within_classes([0, 0, 1, 1]).tolist())
    ['test', 'test', 'train', 'train']
    """
    in_interval("fraction", fraction, 0, 1)
    split = np.full(len(labels), "", dtype="<U7")
    generator = np.random.default_rng(seed)
    sets = as_label_sets(labels, len(labels), "labels")
    for label in np.unique(sets.values):
        rows = generator.permutation(sets.owners[sets.values == label])
        # An earlier label of an image has decided.
        left = rows[split[rows] == ""]
        trained = np.count_nonzero(split[rows] == "train")
        missing = max(_ceiling(fraction * len(rows)) - trained, 0)
        split[left[:missing]] = "train"
        split[left[missing:]] = "test"
    return split


def _spread(values: np.ndarray, count: int) -> np.ndarray:
    """Returns so many of some values, evenly spread, or all if fewer."""
    count = min(count, len(values))
    places = np.linspace(0, len(values) - 1, count).round().astype(int)
    return values[places]


def _present(labels) -> np.ndarray:
    """Returns the classes that have an image, in order."""
    return np.unique(as_label_sets(labels, len(labels), "labels").values)


def _ceiling(value):
    """Rounds up, but treats 0.1 * 30 = 3.0000000000000004 as 3."""
    return math.ceil(round(value, 9))


def _count_of(fraction, num_classes):
    if fraction is None:
        return -(-num_classes // 2)
    in_interval("fraction", fraction, 0, 1)
    return min(max(_ceiling(fraction * num_classes), 1), num_classes - 1)


def _require_classes(present, names):
    if len(present) < 2:
        raise UsageError(
            "A split by class needs at least two classes. Received: "
            f"{len(present)}. Add a class."
        )
    if len(present) < len(names):
        empty = sorted(set(names) - set(present.tolist()))
        raise UsageError(
            "Every class must have at least one image. Received: "
            f"{len(empty)} empty classes, first {names[empty[0]]!r}. "
            "Add images to them or remove them."
        )


def _resolve(argument, chosen, present, names):
    """Converts a list of names or labels to labels; None stays None."""
    if chosen is None:
        return None
    advice = "Put square brackets around a single class."
    listed = not isinstance(chosen, str)
    require(listed, argument, "a list of classes", chosen, advice)
    by_name = {composed(name): label for label, name in names.items()}
    labels = [by_name.get(composed(str(entry)), entry) for entry in chosen]
    known = set(present.tolist())
    for entry, label in zip(chosen, labels, strict=True):
        if label not in known:
            examples = [names.get(one, one) for one in present[:5].tolist()]
            raise UsageError(
                f"`{argument}` must name classes of the data set, such as "
                f"{examples}. Received: {entry!r}"
            )
    return np.unique(np.asarray(labels, dtype=present.dtype))


def _require_disjoint(train, test, names):
    both = np.intersect1d(train, test).tolist()
    if both:
        name = names.get(both[0], both[0])
        raise UsageError(
            "A class must be in `train_classes` or in `test_classes`, not in "
            f"both. Received: {name!r} in both ({len(both)} in all)."
        )
    for split, classes in (("train", train), ("test", test)):
        if not len(classes):
            raise UsageError(
                f"The {split} split must have at least one class. Received: "
                f"none for {split}."
            )
