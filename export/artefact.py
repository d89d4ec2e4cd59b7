"""The folder of an exported model: whole or absent, and known as ours."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_dml.errors import RunError, UsageError
from keras_dml.layers.image_preprocessing import (
    CAFFE_MEAN_BGR,
    IMAGENET_DEVIATION,
    IMAGENET_MEAN,
    ImagePreprocessing,
)
from keras_dml.version import __version__

MANIFEST = "manifest.json"
MAKER = "keras-dml"
REJECTED = ".rejected"

# Suffixes of our hidden folders, which a kill may leave behind.
_PASSING = (".partial", ".former", ".candidate")


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
    _restore_former(path)
    if not force:
        check_replaceable(path)
    partial = _partial(path)
    _remove(partial)
    partial.mkdir(parents=True)
    try:
        yield partial
        put_in_place(partial, path, force=True)
    finally:
        _remove(partial)


def put_in_place(folder: Path, path: Path, force: bool = False) -> None:
    """Renames a finished folder to `path`, over an earlier export there.

    Args:
        folder: The finished folder, on the same disk.
        path: Its place.
        force: Whether to replace what is no export of ours. Defaults to
            `False`.

    Raises:
        UsageError: `path` holds something else and `force` is not set.
    """
    _restore_former(path)
    if not force:
        check_replaceable(path)
    former = _former(path)
    _remove(former)
    if path.exists():
        os.replace(path, former)
    os.replace(folder, path)
    # What a kill left of an earlier export goes as well.
    for passing in (former, _partial(path)):
        _remove(passing)


def remove_export(path: Path) -> None:
    """Removes an export of ours; anything else is left alone."""
    if is_export(path):
        shutil.rmtree(path)


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


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The manifest of an artefact.

    Raises:
        RunError: The folder is not an artefact of ours.
    """
    path = Path(path)
    if not is_export(path):
        raise RunError(
            f"{path} is not an export of {MAKER}: it has no `{MANIFEST}` of "
            "ours. Export the run again."
        )
    return json.loads((path / MANIFEST).read_text(encoding="utf-8"))


def make_manifest(
    embedder: keras.Model,
    *,
    resize: int | None,
    squash: bool,
    metadata: Mapping[str, Any] | None,
    **facts: Any,
) -> dict[str, Any]:
    """What a client must know about an exported embedder.

    Args:
        embedder: The exported model.
        resize: Shorter side in pixels before the crop, `None` for the size of
            the image.
        squash: Whether both sides were resized to it instead.
        metadata: JSON-able facts about the run: recipe, metrics, labels.
        **facts: JSON-able facts about the artefact.
    """
    height, width, channels = embedder.input_shape[1:]
    return {
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
            "normalization": _normalization(embedder),
        },
        "embedding": {
            "dim": embedder.output_shape[-1],
            "unit_length": has_unit_rows(embedder),
        },
        **(metadata or {}),
    }


def has_unit_rows(embedder: keras.Model) -> bool:
    """Whether an embedder's rows have length 1."""
    return embedder.layers[-1].name == "unit"


def write_manifest(folder: Path, embedder: keras.Model, **facts: Any) -> None:
    """Writes the result of `make_manifest` into `manifest.json`."""
    write_json(folder / MANIFEST, make_manifest(embedder, **facts))


def write_json(path: Path, content: Any) -> None:
    """Writes JSON for people to read, too."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


_NORMALIZATIONS: dict[str, dict[str, Any]] = {
    "none": {"order": "RGB", "mean": [0.0], "deviation": [1.0]},
    "unit": {"order": "RGB", "mean": [0.0], "deviation": [255.0]},
    "tf": {"order": "RGB", "mean": [127.5], "deviation": [127.5]},
    "torch": {
        "order": "RGB",
        "mean": [255.0 * mean for mean in IMAGENET_MEAN],
        "deviation": [255.0 * one for one in IMAGENET_DEVIATION],
    },
    "caffe": {"order": "BGR", "mean": [*CAFFE_MEAN_BGR], "deviation": [1.0]},
}


def _normalization(embedder: keras.Model) -> dict[str, Any]:
    """What the model itself does to its pixels: `(x - mean) / deviation`."""
    for layer in embedder.layers:
        if isinstance(layer, ImagePreprocessing):
            return {"inside_model": True, **_NORMALIZATIONS[layer.mode]}
    return {"inside_model": True}


def _partial(path):
    return path.with_name(f".{path.name}.partial")


def _former(path):
    return path.with_name(f".{path.name}.former")


def _restore_former(path):
    """Undoes a kill between the two renamings of `put_in_place`."""
    if _former(path).is_dir() and not path.exists():
        os.replace(_former(path), path)


def _is_foreign(path):
    if not path.exists() or is_export(path):
        return False
    if path.name.startswith(".") and path.suffix in _PASSING:
        return False
    return not path.is_dir() or any(path.iterdir())


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
