"""Writes metadata into a LiteRT file, in the two forms that clients read.

The standard `TFLITE_METADATA` table is for tools such as Android Studio and
Netron. The manifest is in a zip archive after the model, where the standard
puts associated files: `zipfile` and `unzip` open the `.tflite`.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from keras_dml.errors import RunError
from keras_dml.export.artifact import MAKER, MANIFEST

LABELS = "labels.txt"

_TABLE_NAME = "TFLITE_METADATA"
_TABLE_IDENTIFIER = b"M001"
# Constants of the standard schema, `metadata_schema.fbs`.
_NORMALIZATION_OPTIONS = np.uint8(1)
_FEATURE_PROPERTIES = np.uint8(1)
_IMAGE_PROPERTIES = np.uint8(2)
_COLOR_SPACES = {3: np.int8(1), 1: np.int8(2)}


def add_metadata(content: bytes, manifest: Mapping[str, Any]) -> bytes:
    """Adds a manifest to a LiteRT file.

    Args:
        content: The content of the converted file.
        manifest: JSON-able dict of `make_manifest`. A list "labels" becomes
            the file `labels.txt`, with one label per line.

    Returns:
        The content of the file with metadata.
    """
    labels = manifest.get("labels")
    files = {MANIFEST: json.dumps(manifest, indent=2) + "\n"}
    if labels:
        files[LABELS] = "".join(f"{label}\n" for label in labels)
    model = flatbuffer_utils.convert_bytearray_to_object(content)
    _add_table(model, _TABLE_NAME, _table(manifest, list(files)))
    buffer = io.BytesIO(flatbuffer_utils.convert_object_to_bytearray(model))
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, text in files.items():
            # `ZipInfo` has a fixed date, so that the same model gives the
            # same file.
            entry = zipfile.ZipInfo(name)
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Reads the manifest inside a LiteRT file with Python's `zipfile`.

    Args:
        path: A `.tflite` file.

    Raises:
        RunError: If the file has no manifest.

    Example:

    ```python
    manifest = read_metadata("export/litert/embedder.tflite")
    manifest["image"]["height"]
    ```
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(MANIFEST))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} holds no metadata of {MAKER}: {error}. Export the run "
            "again."
        ) from error


def _add_table(model, name, content):
    entry = schema.MetadataT()
    entry.name = name
    entry.buffer = len(model.buffers)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(content, dtype="uint8")
    model.buffers.append(buffer)
    model.metadata = [*(model.metadata or []), entry]


def _table(manifest: Mapping[str, Any], files: Sequence[str]) -> bytes:
    """Returns the standard table, which describes input, output and files.

    A dict stands for a table; its keys are the numbers of the fields.
    """
    image = manifest["image"]
    size = {0: np.uint32(image["width"]), 1: np.uint32(image["height"])}
    pixels = {
        0: "image",
        1: f"One {image['order']} image, values 0 to 255, as the manifest "
        "describes its resizing; normalization is inside the model.",
        3: {
            0: _IMAGE_PROPERTIES,
            1: {0: _COLOR_SPACES[image["channels"]], 1: size},
        },
        # The model normalizes, so the client must not.
        4: [{0: _NORMALIZATION_OPTIONS, 1: {0: [0.0], 1: [1.0]}}],
    }
    length = "of length 1" if manifest["embedding"]["unit_length"] else "raw"
    embedding = {
        0: "embedding",
        1: f"The embedding of the image, {length}.",
        3: {0: _FEATURE_PROPERTIES, 1: {}},
    }
    recipe = manifest.get("recipe", "unknown")
    root = {
        0: "embedder",
        1: f"An image embedder made by {MAKER}; recipe: {recipe}.",
        2: manifest["version"],
        3: [{2: [pixels], 3: [embedding]}],
        4: MAKER,
        6: [{0: name} for name in files],
        7: "1.0.0",
    }
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write(builder, root), file_identifier=_TABLE_IDENTIFIER)
    return bytes(builder.Output())


def _write(builder: flatbuffers.Builder, value: Any) -> int:
    """Writes a text, a list or a table, and returns its offset."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, list):
        prepend = builder.PrependFloat32
        if not isinstance(value[0], float):
            prepend = builder.PrependUOffsetTRelative
            value = [_write(builder, item) for item in value]
        builder.StartVector(4, len(value), 4)
        for item in reversed(value):
            prepend(item)
        return builder.EndVector()
    # The table itself holds numbers; everything else is written before it.
    fields = {
        slot: field if isinstance(field, np.generic) else _write(builder, field)
        for slot, field in value.items()
    }
    builder.StartObject(max(fields, default=-1) + 1)
    for slot, field in fields.items():
        if isinstance(field, np.generic):
            kind = field.dtype.name.capitalize()
            getattr(builder, f"Prepend{kind}Slot")(slot, int(field), 0)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, field, 0)
    return builder.EndObject()
