"""Reads a folder with one sub-folder per class."""

import os
from collections import Counter
from pathlib import Path

from keras_dml.data import splits
from keras_dml.data.image_tree import (
    SUFFIXES,
    ImageTree,
    check_forms,
    ids_of,
    image_tree,
    warn_once,
)
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.files import readable


def read_folder(path, allow_partial: bool = False) -> Manifest:
    """Reads `path/[<group>/]<class>/<image>`; classes in sorted order.

    If the folder holds nothing but a sub-folder called `images`, that
    sub-folder is read instead. Names that start with a dot, folders that start
    with `__`, and files whose suffix is not one of `SUFFIXES`, are skipped. The
    first half of the classes trains.

    Folders of class folders are groups, coarser classes, if none of them
    holds an image, no class is in two of them, and none is called like a
    split.

    Args:
        path: Path of the folder.
        allow_partial: Boolean, whether to leave out sub-folders without an
            image instead of raising. Defaults to `False`.

    Returns:
        `Manifest`, `partial` if classes were left out.

    Raises:
        UsageError: If the folder is missing or has fewer than two classes, if
            images lie at two depths, if two classes have one name, or if a
            class has no image and `allow_partial` is `False`.
    """
    if not os.path.isdir(path):
        raise UsageError(
            f"`{path}` must be a folder with one sub-folder per class. "
            "Received: no such folder."
        )
    tree = image_tree(path)
    _check_depth(tree)
    folders = tree.class_folders()
    files: dict[str, list[str]] = {folder: [] for folder in folders}
    for image in tree.images:
        if (folder := os.path.dirname(image)) in files:
            files[folder].append(image)
    empty = [name for name in folders if not files[name]]
    if empty and not allow_partial:
        _refuse_empty(tree, empty, len(folders))
    classes = [name for name in folders if files[name]]
    check_forms(classes)
    if len(classes) < 2:
        raise UsageError(
            f"{tree.root} must have at least two sub-folders with images, one "
            f"per class. Received: {len(classes)}."
        )
    _warn_of_rest(tree)
    names = [file for name in classes for file in files[name]]
    labels = [label for label, name in enumerate(classes) for _ in files[name]]
    groups = sorted({name.partition("/")[0] for name in folders})
    group = [groups.index(name.partition("/")[0]) for name in classes]
    return Manifest(
        name=Path(path).resolve().name,
        labels=labels,
        class_names=[readable(os.path.basename(name)) for name in classes],
        ids=ids_of(names),
        paths=[os.path.join(tree.root, name) for name in names],
        split=splits.class_disjoint(labels),
        group=[group[label] for label in labels] if "/" in classes[0] else None,
        partial=bool(empty),
    )


def _check_depth(tree: ImageTree) -> None:
    """Raises if class folders hold images at two depths."""
    counts = Counter(map(os.path.dirname, tree.images))
    # An image in the root has no class.
    del counts[""]
    first: dict[int, str] = {}
    for folder in counts:
        first.setdefault(folder.count("/"), folder)
    if len(first) < 2:
        return
    upper, lower = first[min(first)], first[max(first)]
    raise UsageError(
        f"All class folders of {tree.root} must lie at one depth, with the "
        f"images directly in them. Received: {counts[upper]} images in "
        f"{readable(upper)!r} and {counts[lower]} in {readable(lower)!r}. Move "
        "the images of either, so that none is left out."
    )


def _refuse_empty(tree: ImageTree, empty: list[str], total: int) -> None:
    nested = [one for one in tree.folders if os.path.dirname(one) == empty[0]]
    hint = tree.why_no_groups() if nested else "Add images to it or remove it."
    raise UsageError(
        f"Every class folder of {tree.root} must hold an image "
        f"({', '.join(SUFFIXES)}). Received: {len(empty)} of {total} without "
        f"one, first {empty[0]!r}. {hint}"
    )


def _warn_of_rest(tree: ImageTree) -> None:
    tree.warn_of_others()
    loose = sum("/" not in image for image in tree.images)
    if loose:
        warn_once(
            f"Passed over {loose} images directly in {readable(tree.root)}, "
            "which have no class."
        )
