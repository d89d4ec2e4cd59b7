"""The folder of an exported model: whole or absent, and known as ours."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_dml.errors import UsageError
from keras_dml.version import __version__

MANIFEST = "manifest.json"
MAKER = "keras-dml"


@contextlib.contextmanager
def replacing_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `path` and renames it at the end.

    An error, a kill or a full disk while it is written leaves an earlier
    export at `path` untouched.

    Args:
        path: The folder to write, or to replace if it is an export of ours.
        force: Whether to replace any other folder too. Defaults to `False`.

    Raises:
        UsageError: `path` holds something else and `force` is not set.
    """
    former = path.with_name(f".{path.name}.former")
    if former.is_dir() and not path.exists():
        # A kill between the two renamings below.
        os.replace(former, path)
    if not force:
        check_replaceable(path)
    partial = path.with_name(f".{path.name}.partial")
    _remove(partial)
    partial.mkdir(parents=True)
    try:
        yield partial
        _remove(former)
        if path.exists():
            os.replace(path, former)
        os.replace(partial, path)
        _remove(former)
    finally:
        _remove(partial)


def check_replaceable(path: Path) -> None:
    """Refuses a path that holds something that we did not export.

    Raises:
        UsageError: It is a file, or a folder with files and no manifest of
            ours.
    """
    if _is_foreign(path):
        raise UsageError(
            f"{path} exists and is not an export of {MAKER}, so it is left "
            "alone. Name another `--output`, or pass `--force` to replace it."
        )


def check_output(path: Path) -> None:
    """Refuses a folder that holds anything but our exports.

    Raises:
        UsageError: It does, or it is a file.
    """
    if path.is_dir():
        foreign = sorted(filter(_is_foreign, path.iterdir()))
    else:
        foreign = [path] if path.exists() else []
    if foreign:
        raise UsageError(
            f"`--output` is not empty: {foreign[0]} is not an export of "
            f"{MAKER}. Name another folder, or pass `--force` to write into "
            "this one."
        )


def is_export(path: Path) -> bool:
    """Whether a folder is an artefact of ours."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("made_by") == MAKER


def write_manifest(
    folder: Path,
    embedder: keras.Model,
    *,
    resize: int | None,
    squash: bool,
    metadata: Mapping[str, Any] | None,
    **facts: Any,
) -> None:
    """Writes what a client must know into `manifest.json`.

    Args:
        folder: The artefact.
        embedder: The exported model.
        resize: Shorter side in pixels before the crop, `None` for the size of
            the image.
        squash: Whether both sides were resized to it instead.
        metadata: JSON-able facts about the run: recipe, metrics, labels.
        **facts: JSON-able facts about the artefact.
    """
    height, width, channels = embedder.input_shape[1:]
    manifest = {
        "made_by": MAKER,
        "version": __version__,
        **facts,
        "image": {
            "height": height,
            "width": width,
            "channels": channels,
            "order": "RGB" if channels == 3 else "grey",
            "values": [0, 255],
            "resize": resize or min(height, width),
            "squash": squash,
            "antialias": True,
            "crop": "centre",
        },
        "embedding": {
            "dim": embedder.output_shape[-1],
            "unit_length": embedder.layers[-1].name == "unit",
        },
        **(metadata or {}),
    }
    (folder / MANIFEST).write_text(
        json.dumps(manifest, indent=2) + "\n", encoding="utf-8"
    )


def _is_foreign(path):
    if not path.exists() or is_export(path):
        return False
    if path.name.startswith(".") and path.suffix in (".partial", ".former"):
        return False
    return not path.is_dir() or any(path.iterdir())


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
