"""Draws the images of each batch of an epoch, as pure functions of the seed.

numpy draws all batches of an epoch at once, from (seed, epoch) only. So a run
that is resumed at epoch 7 sees the same batches as an uninterrupted run,
without any saved random state.
"""

import numpy as np

from keras_dml.checks import of_shape, positive_integer, require
from keras_dml.data.class_orders import (
    draw_classes,
    draw_neighborhoods,
    groups_of_classes,
)
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import as_label_sets


def balanced_batches(
    labels,
    classes: int,
    images: int,
    seed: int,
    epoch: int,
    steps: int | None = None,
    groups=None,
    similarity=None,
) -> np.ndarray:
    """Draws batches of `classes` classes with `images` images of each.

    Classes come in a random order without repetition until fewer than
    `classes` are left; then a new order is drawn. The images of a class come
    from a shuffled pass over them; a new pass is drawn when fewer than
    `images` are left. A class with fewer than `images` images gives all of
    them, and repeats some to reach `images`.

    With `groups`, the classes of a group follow each other in the order, so
    that a batch holds classes that are alike and hard to tell apart. With
    `similarity`, a batch holds a class, drawn in the same order, and the
    `classes - 1` that are most like it, such as those with the nearest
    proxies.

    An image with several labels belongs to each of their classes. If two
    classes of a batch draw it, the second takes another image that the batch
    lacks, if it has one.

    Args:
        labels: Integer array `(n,)`, the label of every image; or boolean
            matrix `(n, classes)` of their labels.
        classes: Integer, the number of classes in a batch.
        images: Integer, the number of images of each class in a batch.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        steps: Integer, the number of batches to draw. Defaults to
            `(n - 1) // (classes * images)`, at least 1.
        groups: Integer array `(n,)`, the group of classes of every image.
            Defaults to `None`: any class may follow any other.
        similarity: Float array `(C, C)` of the `C` classes in the order of
            their labels, larger for classes that are more alike. Defaults to
            `None`. Excludes `groups`.

    Returns:
        int64 array `(steps, classes * images)` of rows of `labels`, grouped
        by class.

    Raises:
        UsageError: If `labels` has fewer than `classes` classes, `groups` are
            not of the images or a class is in several, or `similarity` is not
            of the classes.

    Example:

    >>> balanced_batches([0, 0, 1, 1, 2, 2], 2, 2, seed=0, epoch=0).shape
    (1, 4)

    Reference:
        - [ProxyNCA++](https://arxiv.org/abs/2004.01113), section 3.7 (class
          balanced sampling; its code draws the classes of each batch anew).
        - Suh et al., "Stochastic Class-Based Hard Example Mining for Deep
          Metric Learning", 2019 (`similarity`).
    """
    labels = np.asarray(labels)
    check(labels, classes, images)
    if steps is None:
        steps = max((len(labels) - 1) // (classes * images), 1)
    positive_integer("steps", steps)
    generator = np.random.default_rng((seed, epoch))
    sets = as_label_sets(labels, len(labels), "labels")
    order = np.argsort(sets.values, kind="stable")
    members = sets.owners[order]
    _, starts, counts = np.unique(
        sets.values[order], return_index=True, return_counts=True
    )
    if similarity is None:
        if groups is not None:
            groups = of_shape("groups", np.asarray(groups), len(labels))
            groups = groups_of_classes(sets, groups)
        chosen = draw_classes(generator, len(counts), classes, steps, groups)
    else:
        require(groups is None, "groups", "None with `similarity`", groups)
        of_shape("similarity", similarity, len(counts), len(counts))
        chosen = draw_neighborhoods(generator, similarity, classes, steps)
    rows = _draw_images(generator, chosen, members, starts, counts, images)
    if labels.ndim == 2:
        of_class = np.split(members, starts[1:])
        for batch, own in zip(
            rows.reshape(steps, classes, images),
            chosen.reshape(steps, classes),
            strict=True,
        ):
            _draw_again(generator, batch, [of_class[label] for label in own])
    return rows.reshape(steps, classes * images)


def check(labels, classes: int, images: int) -> list[str]:
    """Warns if these labels do not suit balanced batches.

    Args:
        labels: Integer array `(n,)`, or boolean matrix `(n, classes)`.
        classes: Integer, the number of classes in a batch.
        images: Integer, the number of images of each class in a batch.

    Returns:
        List of warnings as full sentences; empty if there is no problem.

    Raises:
        UsageError: If `labels` has fewer than `classes` classes.
    """
    positive_integer("classes", classes)
    positive_integer("images", images)
    sets = as_label_sets(labels, len(labels), "labels")
    names, counts = np.unique(sets.values, return_counts=True)
    if len(names) < classes:
        raise UsageError(
            f"A batch needs {classes} classes, but there are "
            f"{len(names)}. Received: classes={classes}. Lower `classes` to "
            f"at most {len(names)}, or add classes."
        )
    warnings = []
    if images == 1:
        warnings.append(
            "With `images=1` a batch holds no positive pair: losses on pairs "
            "have nothing to pull together. Use at least `images=2`."
        )
    single = int(np.sum(counts == 1))
    if single:
        warnings.append(
            f"{single} of {len(names)} classes have a single image (first: "
            f"label {names[counts == 1][0]}). It is repeated within a batch, "
            "so these classes give no positive pair of different images."
        )
    short = int(np.sum((counts > 1) & (counts < images)))
    if short:
        warnings.append(
            f"{short} of {len(names)} classes have fewer than {images} "
            "images: some of them appear more than once in a batch."
        )
    return warnings


def _draw_images(generator, chosen, members, starts, counts, images):
    """Draws the rows of every chosen class.

    Each turn of a class takes the next `images` rows of its shuffled pass.
    One sort shuffles all passes that the epoch needs, because a loop over
    11,318 classes takes seconds.

    Returns:
        int64 array `(len(chosen), images)`.
    """
    turns_per_pass = np.maximum(counts // images, 1)
    turn = _occurrence(chosen)
    pass_number = turn // turns_per_pass[chosen]
    keys, part = np.unique(
        chosen * (pass_number.max() + 1) + pass_number, return_inverse=True
    )
    part_class = keys // (pass_number.max() + 1)
    # A class with too few images needs several whole passes for one turn.
    shuffles = -(-images // counts[part_class])
    block_class = np.repeat(part_class, shuffles)
    lengths = counts[block_class]
    block_starts = np.cumsum(lengths) - lengths
    block = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(block)) - block_starts[block]
    rows = members[starts[block_class][block] + within]
    rows = rows[np.lexsort((generator.random(len(rows)), block))]
    first_block = np.cumsum(shuffles) - shuffles
    offset = (turn % turns_per_pass[chosen]) * images
    begin = block_starts[first_block[part]] + offset
    return rows[begin[:, None] + np.arange(images)]


def _draw_again(generator, batch, members):
    """Replaces images that an earlier class of the batch has drawn.

    Args:
        batch: int64 array `(classes, images)` of rows; changed in place.
        members: The rows of each of these classes.
    """
    drawn: set[int] = set()
    for rows, own in zip(batch, members, strict=True):
        again = np.flatnonzero(np.isin(rows, [*drawn]))
        spare = np.setdiff1d(own, [*drawn, *rows])
        new = generator.permutation(spare)[: len(again)]
        rows[again[: len(new)]] = new
        drawn.update(rows.tolist())


def _occurrence(values):
    """Counts how often each value occurred before: [5, 3, 5] -> [0, 0, 1]."""
    order = np.argsort(values, kind="stable")
    _, starts, counts = np.unique(
        values[order], return_index=True, return_counts=True
    )
    occurrence = np.empty_like(order)
    occurrence[order] = np.arange(len(order)) - np.repeat(starts, counts)
    return occurrence
