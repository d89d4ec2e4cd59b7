"""Lists the images to embed in a fixed order, with or without classes."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_dml.brief import Brief
from keras_dml.data import readers
from keras_dml.data.image_tree import SUFFIXES, ids_of, image_tree
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.csv_file import listed_images
from keras_dml.embeddings.embedding_set import SEPARATOR
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ImageList(Brief):
    """Images in a fixed order, as files below a folder or as pixels.

    Args:
        ids: Unique strings.
        files: Paths below `root`, one per id. Defaults to `None`, if the
            pixels are in `pixels`.
        root: The folder of the files.
        labels: Names of the classes, one per id; several of an image are
            joined by `|`. Defaults to `None`.
        pixels: `Manifest` of images in memory. Defaults to `None`.
        several: Whether an image may have several labels; otherwise a `|` is
            a character of a name. Defaults to `False`.
    """

    ids: Sequence[str]
    files: Sequence[str] | None = None
    root: str = ""
    labels: Sequence[str] | None = None
    pixels: Manifest | None = None
    several: bool = False

    def _brief_title(self) -> str:
        return f"ImageList of {len(self):,} images in {self.root or 'memory'}"

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
            if self.several:
                label = label.replace(SEPARATOR, "\0")
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
        directly in a folder that training would take for a class.

    Raises:
        UsageError: If the source does not exist, or has no image.
    """
    named = readers.is_named(source)
    if not named and os.path.isdir(source):
        return _list_folder(source)
    if not named and os.path.isfile(source):
        return _list_csv(Path(source))
    manifest = readers.read(source, data_dir, allow_partial)
    return ImageList(
        ids=manifest.ids.tolist(),
        files=None if manifest.paths is None else manifest.paths.tolist(),
        labels=manifest.names.tolist(),
        pixels=manifest if manifest.paths is None else None,
        several=manifest.has_label_sets,
    )


def _list_folder(root: str) -> ImageList:
    """Lists all images below a folder, in sorted order."""
    tree = image_tree(root)
    if not tree.images:
        raise UsageError(
            f"{tree.root} must hold images ({', '.join(SUFFIXES)}). Received: "
            f"{tree.others.total() or 'no'} other files. Name the folder of "
            "the images."
        )
    tree.warn_of_others()
    return ImageList(ids_of(tree.images), tree.images, tree.root, tree.labels())


def _list_csv(path: Path) -> ImageList:
    images = listed_images(path, "path")
    files = list(images)
    labels = [SEPARATOR.join(sorted(one.labels)) for one in images.values()]
    missing = labels.count("")
    if 0 < missing < len(labels):
        raise UsageError(
            f"Every line of {path} must have a label, or none. Received: "
            f"{missing} of {len(labels)} without."
        )
    return ImageList(
        files,
        files,
        str(path.parent),
        None if missing else labels,
        several=any(len(one.labels) > 1 for one in images.values()),
    )


def _stamp(path: str) -> bytes:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return b"missing\n"
    return f"{status.st_size} {status.st_mtime_ns}\n".encode()
