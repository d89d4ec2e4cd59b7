"""Writes the folder of an exported model completely or not at all.

The manifest in the folder marks it as an export of keras-dml.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import keras
from pydantic import BaseModel, ConfigDict, PositiveInt

from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.config.values import Side
from keras_dml.data.image_fit import ImageFit
from keras_dml.errors import RunError, UsageError
from keras_dml.export.normalization import normalization
from keras_dml.export.options import ExportOptions
from keras_dml.files import check_fields, lock, read_json
from keras_dml.layers import EmbeddingHead
from keras_dml.version import __version__

MANIFEST = "manifest.json"
MAKER = "keras-dml"
REJECTED = ".rejected"

# Suffixes of our hidden folders and files, which a kill may leave behind.
_PARTIAL, _FORMER, _LOCK = ".partial", ".former", ".lock"
_PASSING = (_PARTIAL, _FORMER, _LOCK, ".candidate")


class _Image(BaseModel):
    model_config = ConfigDict(strict=True)
    height: Side
    width: Side
    channels: Literal[1, 3]
    resize: Side
    squash: bool


class _Embedding(BaseModel):
    model_config = ConfigDict(strict=True)
    dim: PositiveInt
    unit_length: bool


class _Manifest(BaseModel):
    """What every reader of a manifest needs; formats add their own."""

    format: str
    image: _Image
    embedding: _Embedding


class ExportFolder(ClaimedFolder):
    """The folder of one artifact."""

    kind = f"an export of {MAKER}"
    record_name = MANIFEST
    maker = MAKER

    def check_free(self) -> None:
        """Raises if the folder holds files that are no export of keras-dml.

        Raises:
            UsageError: If the path is a file, or a folder with files but
                without a manifest of keras-dml.
        """
        if self.foreign:
            raise UsageError(
                f"{self.path} exists and is not {self.kind}, so it is left "
                "alone. Choose another `output`, or pass `force=True` to "
                "replace it."
            )


@contextlib.contextmanager
def replacing_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """Yields a temporary folder next to `path`, and renames it at the end.

    If an error, a kill or a full disk stops the writing, an earlier export at
    `path` stays unchanged.

    Args:
        path: The folder to write, or to replace if it is an export of
            keras-dml.
        force: Whether to replace any other folder too. Defaults to `False`.

    Raises:
        UsageError: If `path` holds something else and `force` is not set, or
            another process is writing it.
    """
    _check_place(path, force)
    with temporary_folder(_hidden(path, _PARTIAL)) as partial:
        yield partial
        put_in_place(partial, path, force=True)


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Makes an empty folder, and removes it and its new parents at the end.

    Raises:
        UsageError: If another process uses the folder.
    """
    made = [one for one in folder.parents if not one.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, which may be renamed.
    file = folder.with_name(folder.name + _LOCK)
    with _locked(file, folder):
        try:
            _remove(folder)
            folder.mkdir()
            yield folder
        finally:
            _remove(folder)
            file.unlink()
            for one in made:
                if any(one.iterdir()):
                    break
                one.rmdir()


def _locked(file: Path, folder: Path) -> IO[str]:
    """Locks a file until it is closed, for an export by way of a folder."""
    while (opened := lock(file)) is not None:
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                return opened
        # Another process removed the file before it was locked here.
        opened.close()
    raise UsageError(
        f"Another process is exporting by way of {folder}. Wait for it, or "
        "choose another `output`."
    )


def put_in_place(folder: Path, path: Path, force: bool = False) -> None:
    """Renames a finished folder to `path`, and replaces an earlier export.

    Args:
        folder: The finished folder, on the same disk.
        path: Its new path.
        force: Whether to replace a folder or file that is no export of
            keras-dml. Defaults to `False`.

    Raises:
        UsageError: If `path` holds something else and `force` is not set.
    """
    _check_place(path, force)
    former = _hidden(path, _FORMER)
    _remove(former)
    if path.exists():
        os.replace(path, former)
    os.replace(folder, path)
    # Also removes the folders that a killed earlier export left.
    for passing in (former, _hidden(path, _PARTIAL)):
        _remove(passing)


def check_output(path: Path) -> None:
    """Raises if a folder holds anything except exports of keras-dml.

    Raises:
        UsageError: If it does, or if `path` is a file.
    """
    entries = sorted(path.iterdir()) if path.is_dir() else [path]
    for entry in entries:
        passing = entry.name.startswith(".") and entry.suffix in _PASSING
        if ExportFolder(entry).foreign and not passing:
            raise UsageError(
                f"`output` is not empty: {entry} is not an export of {MAKER}. "
                "Choose another folder, or pass `force=True` to write into "
                "this one."
            )


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Reads the manifest of an artifact.

    Raises:
        RunError: If the folder is not an artifact of keras-dml.
        UsageError: If the manifest does not say what an artifact takes and
            gives.
    """
    folder = ExportFolder(path)
    if not folder.exists:
        raise RunError(
            f"{path} is not an export of {MAKER}: it has no `{MANIFEST}` of "
            "ours. Export the run again."
        )
    manifest = read_json(folder.record)
    return check_fields(
        manifest, _Manifest, folder.record, "the manifest of an export"
    )


def make_manifest(
    embedder: keras.Model, options: ExportOptions, **facts: Any
) -> dict[str, Any]:
    """Returns everything a client must know about an exported embedder.

    Args:
        embedder: The exported model.
        options: `ExportOptions`; the manifest holds its `resize`, `squash`
            and `metadata`.
        **facts: JSON-able facts about the artifact.

    Raises:
        UsageError: If `resize` is smaller than the embedder's images.
    """
    height, width, channels = embedder.input_shape[1:]
    # Raises for a client what the SavedModel raises for itself.
    ImageFit(max(height, width), channels, options.resize)
    return {
        "made_by": MAKER,
        "version": __version__,
        **facts,
        "image": {
            "height": height,
            "width": width,
            "channels": channels,
            "order": "RGB" if channels == 3 else "gray",
            "values": [0, 255],
            "resize": options.resize or min(height, width),
            "squash": bool(options.squash),
            "antialias": True,
            "crop": "center",
            "normalization": normalization(embedder),
        },
        "embedding": {
            "dim": embedder.output_shape[-1],
            "unit_length": has_unit_rows(embedder),
        },
        **options.metadata,
    }


def has_unit_rows(embedder: keras.Model) -> bool:
    """Returns whether the last layer of an embedder makes rows of length 1."""
    last = embedder.layers[-1]
    if isinstance(last, EmbeddingHead):
        return last.normalization == "l2"
    return isinstance(last, keras.layers.UnitNormalization)


def _check_place(path: Path, force: bool) -> None:
    """Repairs a killed replacement, and raises if `path` must not be replaced.

    A kill between the two renamings leaves only the former export, which is
    renamed back.
    """
    former = _hidden(path, _FORMER)
    if former.is_dir() and not path.exists():
        os.replace(former, path)
    if not force:
        ExportFolder(path).check_free()


def _hidden(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}{suffix}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
