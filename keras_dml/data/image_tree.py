"""Lists what lies below a folder of images, and which folders are classes.

Training and `embed` read a folder by this, so that ids and labels agree.
"""

import dataclasses
import functools
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.files import readable

SUFFIXES = (
    *(".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png", ".tif"),
    *(".tiff", ".webp"),
)
LONGEST_NAME = 200
# Folders that other programs leave behind.
LEFT_BY_OTHERS = {"__MACOSX", "__pycache__"}
# Folders of these names hold the images of a split, not those of a group.
SPLITS = {"test", "testing", "train", "training", "val", "valid", "validation"}
# How often links may lead to one folder; nested ones double at every level.
MOST_WAYS = 100
# What marks the folder of a run or of a comparison, which is no class: `fit .`
# writes `runs` beside the classes.
RECORDS = ("config.yaml", "plan.yaml")
# A log names so many suffixes.
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class ImageTree:
    """The images and folders below a folder, as paths below it.

    Attributes:
        root: The folder.
        images: The images, sorted at each level by name.
        folders: The folders, in the same order.
        others: How many other files have each suffix.
        passed: The folders that are passed over for their names.
    """

    root: str
    images: list[str]
    folders: list[str]
    others: Counter[str]
    passed: list[str]

    def class_folders(self) -> list[str]:
        """Returns the folders that are classes, sorted by their own names.

        They are the folders in the root. If none of those holds an image, they
        are groups, coarser classes, and the folders in them are the classes;
        unless a group holds no folder or is called like a split, or two
        classes have one name.
        """
        if self.why_no_groups():
            return self._at(0)
        return sorted(self._at(1), key=os.path.basename)

    def why_no_groups(self) -> str:
        """Says what to do so that folders are groups; empty if they are."""
        top, inner = self._at(0), self._at(1)
        holding = {*map(os.path.dirname, self.images)} & {*top}
        groups = {one.partition("/")[0] for one in inner}
        if holding or len(groups) < len(top):
            return "Give the folder that directly holds the classes."
        parts = sorted(name for name in top if name.lower() in SPLITS)
        if parts:
            return (
                f"{readable(parts[0])!r} is called like a split: give the "
                "folder that directly holds the classes, or list all images in "
                "a CSV file with a column `split`."
            )
        found: dict[str, str] = {}
        for one in inner:
            other = found.setdefault(_composed_name(one), one)
            if other != one:
                return (
                    f"{readable(other)!r} and {readable(one)!r} have one name: "
                    "give the classes of groups names of their own."
                )
        return ""

    def _at(self, depth: int) -> list[str]:
        return [one for one in self.folders if one.count("/") == depth]

    def labels(self) -> list[str] | None:
        """Returns the class of each image; `None` if one lies in no class."""
        classes = self.class_folders()
        known = {*classes}
        loose = [i for i in self.images if os.path.dirname(i) not in known]
        if loose:
            if len(loose) < len(self.images):
                warn_once(
                    f"No image of {readable(self.root)} gets a label, since "
                    f"{len(loose)} of {len(self.images)} lie in no class "
                    f"folder, such as {readable(loose[0])}."
                )
            return None
        check_forms(classes)
        # One string object per class saves memory for millions of images.
        return [
            sys.intern(readable(os.path.basename(os.path.dirname(image))))
            for image in self.images
        ]

    def warn_of_others(self) -> None:
        """Logs, once in a process, which files and folders are not read."""
        if self.passed:
            warn_once(
                f"Passed over {len(self.passed)} folders of "
                f"{readable(self.root)} whose names start with `__`, such as "
                f"{readable(self.passed[0])}."
            )
        if self.others:
            kinds = self.others.most_common(_NAMED)
            named = ", ".join(f"{count} {kind}" for kind, count in kinds)
            more = ", ..." if len(self.others) > _NAMED else ""
            warn_once(
                f"Passed over {self.others.total()} files of "
                f"{readable(self.root)} that are no images by their suffix: "
                f"{named}{more}."
            )


def image_tree(folder: str | Path) -> ImageTree:
    """Lists what lies below a folder, links followed.

    If the folder holds no image, and no other folder than `images`, that one
    is listed instead. Names that start with a dot and folders that start with
    `__` are passed over, and so are run folders and a link to a folder above
    itself.

    Args:
        folder: Path of the folder.

    Raises:
        UsageError: If a folder may not be read, or links lead to one in too
            many ways.
    """
    root = os.fspath(folder)
    top = listed(root)
    loose = any(_is_image(one.name) for one in top if not is_folder(one))
    folders = [one for one in top if _may_be_class(one)]
    others = [one for one in folders if one.name != "images"]
    inner = len(others) < len(folders) and not loose
    if inner and all(_is_work(listed(one.path)) for one in others):
        root = os.path.join(root, "images")
    tree = ImageTree(root, [], [], Counter(), [])
    for path, is_a_folder in _walk(root):
        if is_a_folder is None:
            tree.passed.append(path)
        elif is_a_folder:
            tree.folders.append(path)
        elif _is_image(path):
            tree.images.append(path)
        else:
            suffix = os.path.splitext(readable(path))[1].lower()
            tree.others[suffix or "without a suffix"] += 1
    return tree


def check_forms(classes: Sequence[str]) -> None:
    """Raises if the names of two class folders are one in another form.

    A Mac writes an accent as a character of its own: copied beside a folder
    from elsewhere, one class would be two, one in training and one in the
    test.

    Raises:
        UsageError: Names both folders.
    """
    found: dict[str, str] = {}
    for one in classes:
        other = found.setdefault(_composed_name(one), one)
        if other != one:
            raise UsageError(
                "Two class folders must not have one name. Received: "
                f"{other!a} and {one!a}, which are two forms of "
                f"{readable(os.path.basename(one))} in Unicode. Move the "
                "images of both into one."
            )


def composed(name: str) -> str:
    """Returns the one form of a name that Unicode may write in several.

    >>> composed("cafe\\u0301") == "caf\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name)


@functools.cache
def warn_once(message: str) -> None:
    """Logs a warning, once in a process: a run reads its images again."""
    logger.warning(message)


def entries_of(folder: str | Path) -> list[os.DirEntry]:
    """Returns the sorted entries of a folder.

    Raises:
        UsageError: If the folder may not be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda one: one.name)
    except OSError as error:
        name = readable(folder)
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME]}..."
        raise UsageError(
            f"{name} must be readable. Received: {error.strerror}. Allow "
            "it, or leave the folder out."
        ) from error


def listed(folder: str | Path) -> list[os.DirEntry]:
    """Returns the entries of a folder that are not hidden, as `entries_of`."""
    return [one for one in entries_of(folder) if not one.name.startswith(".")]


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


def _is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _may_be_class(entry: os.DirEntry) -> bool:
    return not entry.name.startswith("__") and is_folder(entry)


def _composed_name(folder: str) -> str:
    return composed(os.path.basename(folder))


def _walk(root: str) -> Iterator[tuple[str, bool | None]]:
    """Yields the paths below a folder in sorted order, and which are folders.

    Skips a link to a folder above itself. `None` says of a folder that it is
    passed over for its name.
    """
    ways: Counter[tuple[int, int]] = Counter()
    # Folders to enter, each with the folders above it, and files to yield.
    ahead: list[tuple[str, frozenset | None]] = [("", frozenset())]
    while ahead:
        name, above = ahead.pop()
        if above is None:
            yield name, False
            continue
        folder = os.path.join(root, name)
        entries = listed(folder)
        place = _place(folder)
        if place in above:
            continue
        ways[place] += 1
        if ways[place] > MOST_WAYS:
            raise UsageError(
                f"{root} must be a tree of folders. Received: links that lead "
                f"to {readable(folder)} in more than {MOST_WAYS} ways. Give a "
                "folder without them."
            )
        if name and _is_work(entries):
            continue
        if name:
            yield name, True
        above |= {place}
        for entry in reversed(entries):
            below = f"{name}/{entry.name}" if name else entry.name
            if not is_folder(entry):
                ahead.append((below, None))
            elif _may_be_class(entry):
                ahead.append((below, above))
            elif entry.name not in LEFT_BY_OTHERS:
                yield below, None


def _is_work(entries: list[os.DirEntry]) -> bool:
    """Returns whether a folder is that of a run, or holds nothing but such."""
    if _has_record(entries):
        return True
    folders = bool(entries) and all(map(is_folder, entries))
    return folders and all(_has_record(listed(one.path)) for one in entries)


def _has_record(entries: list[os.DirEntry]) -> bool:
    names = [one.name for one in entries]
    return any(one in RECORDS for one in names) and not any(
        map(_is_image, names)
    )


def _place(folder: str) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino
