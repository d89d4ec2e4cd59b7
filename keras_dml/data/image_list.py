"""Lists the images to embed in a fixed order, with or without classes."""

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_dml.console import logger
from keras_dml.data import readers
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.csv_file import check_listed_once, iterate_table
from keras_dml.data.readers.folder import SUFFIXES, folders_of, listed
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True, eq=False)
class ImageList:
    """Images in a fixed order, as files below a folder or as pixels.

    Args:
        ids: Unique strings.
        files: Paths below `root`, one per id. Defaults to `None`, if the
            pixels are in `pixels`.
        root: The folder of the files.
        labels: Names of the classes, one per id. Defaults to `None`.
        pixels: `Manifest` of images in memory. Defaults to `None`.
    """

    ids: Sequence[str]
    files: Sequence[str] | None = None
    root: str = ""
    labels: Sequence[str] | None = None
    pixels: Manifest | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def path(self, row: int) -> str:
        """Returns the path of the file of a row."""
        assert self.files is not None
        return os.path.join(self.root, self.files[row])

    def digest(self, start: int, stop: int) -> str:
        """Returns the SHA-256 of the rows from `start` to `stop`.

        It covers ids, labels, and the size and modification time of each
        file. For images in memory it covers the pixels.
        """
        digest = hashlib.sha256()
        for row in range(start, stop):
            label = "" if self.labels is None else self.labels[row]
            digest.update(f"{self.ids[row]}\0{label}\0".encode())
            if self.files is not None:
                digest.update(_stamp(self.path(row)))
        if self.pixels is not None:
            rows = self.pixels.images[start:stop]
            digest.update(np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()


def list_images(
    source: str,
    data_dir: str | Path | None = None,
    allow_partial: bool = False,
) -> ImageList:
    """Lists the images of a source.

    Args:
        source: A folder, with or without a sub-folder for each class; a CSV
            file with the column path and, if wanted, label; a data set's
            name or `tfds:NAME`.
        data_dir: The folder of a named data set. Defaults to `None`.
        allow_partial: Boolean, whether a named data set may be incomplete.
            Defaults to `False`.

    Returns:
        `ImageList`. The images of a folder have labels if each one lies
        directly in a sub-folder.

    Raises:
        UsageError: If the source does not exist, or has no image.
    """
    named = readers.is_named(source)
    if not named and os.path.isdir(source):
        return _list_folder(source)
    if not named and os.path.isfile(source):
        return _list_csv(Path(source))
    manifest = readers.read(source, data_dir, allow_partial)
    names = manifest.class_names
    return ImageList(
        ids=manifest.ids.tolist(),
        files=None if manifest.paths is None else manifest.paths.tolist(),
        labels=[names[label] for label in manifest.labels.tolist()],
        pixels=manifest if manifest.paths is None else None,
    )


def _list_folder(root: str) -> ImageList:
    """Lists all images below a folder, in sorted order."""
    images = any(one.name.lower().endswith(SUFFIXES) for one in listed(root))
    if folders_of(root) == ["images"] and not images:
        # `read_folder` does the same, so that ids agree.
        root = os.path.join(root, "images")
    files, others = [], 0
    for file in _walk(root, "", set()):
        if file.lower().endswith(SUFFIXES):
            files.append(file)
        else:
            others += 1
    if not files:
        raise UsageError(
            f"{root} must hold images ({', '.join(SUFFIXES)}). Received: "
            f"{others or 'no'} other files. Name the folder of the images."
        )
    if others:
        logger.info(
            "Passed over %d files of %s that are no images by their suffix.",
            others,
            root,
        )
    labels = None
    if all(file.count("/") == 1 for file in files):
        names: dict[str, str] = {}
        classes = [readable(file.partition("/")[0]) for file in files]
        # One string object per class saves memory for millions of images.
        labels = [names.setdefault(name, name) for name in classes]
    return ImageList(_ids(files), files, root, labels)


def _list_csv(path: Path) -> ImageList:
    files, labels = [], []
    for _, row in iterate_table(path, "path"):
        files.append(row["path"])
        labels.append(row.get("label") or "")
    missing = labels.count("")
    if 0 < missing < len(labels):
        raise UsageError(
            f"Every line of {path} must have a label, or none. Received: "
            f"{missing} of {len(labels)} without."
        )
    check_listed_once(path, files)
    return ImageList(
        files, files, str(path.parent), None if missing else labels
    )


def _walk(root: str, folder: str, above: set[tuple[int, int]]) -> Iterator[str]:
    """Yields files below a folder as paths below the root.

    Skips a link to a folder above itself.
    """
    status = os.stat(os.path.join(root, folder))
    place = (status.st_dev, status.st_ino)
    if place in above:
        return
    for entry in listed(os.path.join(root, folder)):
        name = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir():
            yield from _walk(root, name, above | {place})
        else:
            yield name


def _ids(files: Sequence[str]) -> Sequence[str]:
    """Returns the names as valid text, and raises if two become equal."""
    ids = [readable(file) for file in files]
    if len(set(ids)) < len(ids):
        raise UsageError(
            "Two file names are the same once bytes that are no UTF-8 are "
            "written as text. Rename those files."
        )
    return ids


def readable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


def _stamp(path: str) -> bytes:
    try:
        status = os.stat(path)
    except OSError:
        return b"missing\n"
    return f"{status.st_size} {status.st_mtime_ns}\n".encode()
