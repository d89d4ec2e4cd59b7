"""Reads a folder with one sub-folder per class."""

import os
from collections.abc import Sequence
from pathlib import Path

from keras_dml.data import splits
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.files import readable

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
LONGEST_NAME = 200
# Folders of these names hold the images of a split, not those of a group.
SPLITS = {"test", "testing", "train", "training", "val", "valid", "validation"}


def read_folder(path, allow_partial: bool = False) -> Manifest:
    """Reads `path/[<group>/]<class>/<image>`; classes in sorted order.

    If the only sub-folder is called `images`, that sub-folder is read
    instead. Names that start with a dot, and files whose suffix is not one of
    `SUFFIXES`, are skipped. The first half of the classes trains.

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
        UsageError: If the folder is missing or has fewer than two classes, or
            if a class has no image and `allow_partial` is `False`.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError(
            f"`{path}` must be a folder with one sub-folder per class. "
            "Received: no such folder."
        )
    if folders_of(root) == ["images"]:
        root = root / "images"
    folders = folders_of(root)
    files = {name: _images(root / name) for name in folders}
    grouped = [] if any(files.values()) else _classes_of_groups(root, folders)
    if grouped:
        files = {name: _images(root / name) for name in grouped}
    empty = [name for name in files if not files[name]]
    if empty and not allow_partial:
        nested = folders_of(root / empty[0])
        hint = (
            f"It has sub-folders such as {nested[0]!r}: give the folder that "
            "directly holds the classes."
            if nested
            else "Add images to it or remove it."
        )
        raise UsageError(
            f"Every class folder of {root} must hold an image "
            f"({', '.join(SUFFIXES)}). Received: {len(empty)} of "
            f"{len(files)} without one, first {empty[0]!r}. {hint}"
        )
    classes = [name for name in files if files[name]]
    if len(classes) < 2:
        raise UsageError(
            f"{root} must have at least two sub-folders with images, one per "
            f"class. Received: {len(classes)}."
        )
    names = [f"{name}/{file}" for name in classes for file in files[name]]
    labels = [label for label, name in enumerate(classes) for _ in files[name]]
    group = [folders.index(name.partition("/")[0]) for name in classes]
    return Manifest(
        name=Path(path).resolve().name,
        labels=labels,
        class_names=[readable(os.path.basename(name)) for name in classes],
        ids=ids_of(names),
        paths=[os.path.join(root, name) for name in names],
        split=splits.class_disjoint(labels),
        group=[group[label] for label in labels] if grouped else None,
        partial=bool(empty),
    )


def _classes_of_groups(root: Path, groups: Sequence[str]) -> list[str]:
    """Returns the class folders two levels down, or none if they are not."""
    inner = {name: folders_of(root / name) for name in groups}
    classes = [f"{name}/{one}" for name in groups for one in inner[name]]
    names = [os.path.basename(one) for one in classes]
    if (
        {name.lower() for name in groups} & SPLITS
        or not all(inner.values())
        or len({*names}) < len(names)
    ):
        return []
    return sorted(classes, key=os.path.basename)


def listed(folder: str | Path) -> list[os.DirEntry]:
    """Returns the sorted entries of a folder that are not hidden.

    Raises:
        UsageError: If the folder may not be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(
                (one for one in entries if not one.name.startswith(".")),
                key=lambda one: one.name,
            )
    except OSError as error:
        name = readable(folder)
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME]}..."
        raise UsageError(
            f"{name} must be readable. Received: {error.strerror}. Allow "
            "it, or leave the folder out."
        ) from error


def folders_of(root: str | Path) -> list[str]:
    """Returns the sub-folders that may be classes: not hidden, not `__*`."""
    entries = [one for one in listed(root) if is_folder(one)]
    return [one.name for one in entries if not one.name.startswith("__")]


def is_folder(entry: os.DirEntry) -> bool:
    """Returns whether an entry is, or leads to, a folder."""
    try:
        return entry.is_dir()
    except OSError:  # A link that leads to itself.
        return False


def ids_of(files: Sequence[str]) -> Sequence[str]:
    """Returns file names as valid text.

    Raises:
        UsageError: If two become equal.
    """
    ids = [readable(file) for file in files]
    if len(set(ids)) < len(ids):
        raise UsageError(
            "Two file names are the same once bytes that are no UTF-8 are "
            "written as text. Rename those files."
        )
    return ids


def _images(folder):
    named = (
        one for one in listed(folder) if one.name.lower().endswith(SUFFIXES)
    )
    return [one.name for one in named if os.path.isfile(one)]
