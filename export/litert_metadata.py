"""Metadata inside a LiteRT file, in the two forms that clients read.

The standard `TFLITE_METADATA` table is for tools such as Android Studio and
Netron. The manifest itself lies in a zip archive behind the model, where the
standard puts associated files: `zipfile` and `unzip` open the `.tflite`.
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
from keras_dml.export.artefact import MAKER, MANIFEST

LABELS = "labels.txt"

_TABLE_NAME = "TFLITE_METADATA"
_TABLE_IDENTIFIER = b"M001"
# Numbers of the standard schema, `metadata_schema.fbs`.
_NORMALIZATION_OPTIONS = 1
_FEATURE_PROPERTIES = 1
_IMAGE_PROPERTIES = 2
_COLOR_SPACES = {3: 1, 1: 2}


def add_metadata(content: bytes, manifest: Mapping[str, Any]) -> bytes:
    """Adds a manifest to a LiteRT file.

    Args:
        content: The file as it was converted.
        manifest: JSON-able dict of `make_manifest`. A list "labels" becomes
            the file `labels.txt`, one label a line.

    Returns:
        The content of the file with metadata.
    """
    labels = manifest.get("labels")
    files = {MANIFEST: json.dumps(manifest, indent=2) + "\n"}
    if labels:
        files[LABELS] = "".join(f"{label}\n" for label in labels)
    model = flatbuffer_utils.convert_bytearray_to_object(content)
    _add_table(model, _TABLE_NAME, _table(manifest, list(files)))
    buffer = io.BytesIO()
    buffer.write(flatbuffer_utils.convert_object_to_bytearray(model))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # A fixed date, so that the same model is the same file.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return buffer.getvalue()


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Reads the manifest inside a LiteRT file, with Python alone.

    Args:
        path: A `.tflite` file.

    Raises:
        RunError: The file has none.

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


def _table(manifest, files):
    """The standard table: what goes in, what comes out, which files."""
    builder = _Builder()
    image = manifest["image"]
    size = builder.table(uint32={0: image["width"], 1: image["height"]})
    color_space = _COLOR_SPACES[image["channels"]]
    shown = builder.table(int8={0: color_space}, tables={1: size})
    # The client normalizes nothing: that happens inside.
    normalization = builder.table(
        tables={0: builder.floats([0.0]), 1: builder.floats([1.0])}
    )
    unit = builder.table(
        uint8={0: _NORMALIZATION_OPTIONS}, tables={1: normalization}
    )
    pixels = builder.tensor(
        "image",
        f"One {image['order']} image, values 0 to 255, as the manifest "
        "describes its resizing; normalization is inside the model.",
        builder.table(uint8={0: _IMAGE_PROPERTIES}, tables={1: shown}),
        [unit],
    )
    length = "of length 1" if manifest["embedding"]["unit_length"] else "raw"
    vector = builder.tensor(
        "embedding",
        f"The embedding of the image, {length}.",
        builder.table(
            uint8={0: _FEATURE_PROPERTIES}, tables={1: builder.table()}
        ),
    )
    graph = builder.table(
        tables={2: builder.tables([pixels]), 3: builder.tables([vector])}
    )
    associated = [
        builder.table(tables={0: builder.text(name)}) for name in files
    ]
    recipe = manifest.get("recipe", "unknown")
    described = f"An image embedder made by {MAKER}; recipe: {recipe}."
    root = builder.table(
        tables={
            0: builder.text("embedder"),
            1: builder.text(described),
            2: builder.text(manifest["version"]),
            3: builder.tables([graph]),
            4: builder.text(MAKER),
            6: builder.tables(associated),
            7: builder.text("1.0.0"),
        }
    )
    return builder.finish(root)


class _Builder:
    """Writes tables by the numbers of their fields."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1024)

    def table(
        self,
        *,
        int8: Mapping[int, int] | None = None,
        uint8: Mapping[int, int] | None = None,
        uint32: Mapping[int, int] | None = None,
        tables: Mapping[int, int] | None = None,
    ) -> int:
        """A table, of scalars and of things written before."""
        fields = {**(int8 or {}), **(uint8 or {}), **(uint32 or {})}
        fields.update(tables or {})
        self._builder.StartObject(max(fields, default=-1) + 1)
        for slot, value in (tables or {}).items():
            self._builder.PrependUOffsetTRelativeSlot(slot, value, 0)
        for slot, value in (uint32 or {}).items():
            self._builder.PrependUint32Slot(slot, value, 0)
        for slot, value in (int8 or {}).items():
            self._builder.PrependInt8Slot(slot, value, 0)
        for slot, value in (uint8 or {}).items():
            self._builder.PrependUint8Slot(slot, value, 0)
        return self._builder.EndObject()

    def text(self, value: str) -> int:
        return self._builder.CreateString(value)

    def floats(self, values: Sequence[float]) -> int:
        self._builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self._builder.PrependFloat32(value)
        return self._builder.EndVector()

    def tables(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return self._builder.EndVector()

    def tensor(
        self,
        name: str,
        description: str,
        content: int,
        process_units: Sequence[int] = (),
    ) -> int:
        fields = {
            0: self.text(name),
            1: self.text(description),
            3: content,
        }
        if process_units:
            fields[4] = self.tables(process_units)
        return self.table(tables=fields)

    def finish(self, root: int) -> bytes:
        self._builder.Finish(root, file_identifier=_TABLE_IDENTIFIER)
        return bytes(self._builder.Output())
