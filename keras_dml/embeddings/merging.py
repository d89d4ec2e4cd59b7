"""Merges shards of embeddings into one file, with one shard in memory."""

import itertools
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.embeddings.files import (
    LABEL_SETS,
    has_sets,
    import_parquet,
    read_file,
    to_table,
)
from keras_dml.embeddings.shard_folder import ShardFolder, check_manifest
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
        if path.suffix.lower() == ".npz":
            _merge_npz(folder, temporary)
        else:
            _merge_parquet(folder, temporary)


def merged_manifest(path: Path) -> dict[str, Any] | None:
    """Returns the manifest of a merged file; `None` for any other file."""
    try:
        if path.suffix.lower() == ".npz":
            text = str(read_npz(path, (_KEY,))[_KEY])
        else:
            parquet = import_parquet()
            metadata = parquet.read_schema(path).metadata or {}
            text = metadata[_KEY.encode()].decode()
        return check_manifest(json.loads(text), path)
    except Exception:
        return None


def _merge_npz(folder, path):
    manifest, shards = folder.manifest(), folder.shards()
    total = manifest["rows"]
    members = ["embeddings", "ids", *(["labels"] * manifest["labels"])]
    widths = {
        name: max(_column(rows, name).dtype for rows in map(read_file, shards))
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
                for rows in map(read_file, shards):
                    member.write(_column(rows, name).astype(dtype).tobytes())
        facts = {"hash": manifest["weights_hash"], _KEY: json.dumps(manifest)}
        if has_sets(read_file(shards[0])):
            facts[LABEL_SETS] = True
        for name, fact in facts.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(fact))


def _column(rows, name):
    """Returns the values of a member; several labels of an image are joined."""
    return rows.names if name == "labels" else getattr(rows, name)


def _merge_parquet(folder, path):
    tables = (to_table(read_file(shard)) for shard in folder.shards())
    first = next(tables)
    metadata = dict(first.schema.metadata or {})
    metadata[_KEY.encode()] = json.dumps(folder.manifest()).encode()
    schema = first.schema.with_metadata(metadata)
    with import_parquet().ParquetWriter(
        path, schema, write_page_checksum=True
    ) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table.replace_schema_metadata(metadata))
