"""Merges shards of embeddings into one file, with one shard in memory."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.files import import_parquet, read_file, to_table
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError
from keras_dml.files import replacing
from keras_dml.npz import read_npz

_KEY = "manifest"


def merge_shards(folder: ShardFolder, path: Path) -> None:
    """Writes the rows of finished shards to one file, with the manifest.

    Args:
        folder: The finished `ShardFolder`.
        path: The `.npz` or `.parquet` file to write or replace.
    """
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            _merge_npz(folder, temporary)
        else:
            _merge_parquet(folder, temporary)


def merged_manifest(path: Path) -> dict[str, Any] | None:
    """Returns the manifest of a merged file; `None` for any other file."""
    try:
        if path.suffix == ".npz":
            text = str(read_npz(path, (_KEY,))[_KEY])
        else:
            parquet = import_parquet()
            metadata = parquet.read_schema(path).metadata or {}
            text = metadata[_KEY.encode()].decode()
        return json.loads(text)
    except (UsageError, OSError, ValueError, KeyError):
        return None


def _shards(folder: ShardFolder) -> Iterator[EmbeddingSet]:
    for path in folder.shards():
        yield read_file(path)


def _merge_npz(folder, path):
    manifest = folder.manifest()
    total = manifest["rows"]
    members = ["embeddings", "ids", *(["labels"] * manifest["labels"])]
    widths = {
        name: max(getattr(rows, name).dtype for rows in _shards(folder))
        for name in members[1:]
    }
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for name in members:
            dtype = widths.get(name, np.dtype(np.float32))
            shape = (total, manifest["dim"])[: 2 if name == members[0] else 1]
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_1_0(member, header)
                for rows in _shards(folder):
                    member.write(getattr(rows, name).astype(dtype).tobytes())
        for name, text in (
            ("hash", manifest["weights_hash"]),
            (_KEY, json.dumps(manifest)),
        ):
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(text))


def _merge_parquet(folder, path):
    parquet = import_parquet()
    writer = None
    try:
        for rows in _shards(folder):
            table = to_table(rows)
            if writer is None:
                notes = json.dumps(folder.manifest()).encode()
                schema = table.schema.with_metadata(
                    {**(table.schema.metadata or {}), _KEY.encode(): notes}
                )
                writer = parquet.ParquetWriter(path, schema)
            writer.write_table(table.replace_schema_metadata(schema.metadata))
    finally:
        if writer is not None:
            writer.close()
