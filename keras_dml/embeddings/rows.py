"""Rows of embeddings in a file: an `.npz` archive or an Apache Parquet file.

Neither holds a pickle. A Parquet file has the columns `id`, `label` where the
images have one, and `embedding`, and the hash of the weights in its metadata.
"""

import dataclasses
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.embeddings.npz_file import read_arrays
from keras_dml.errors import UsageError
from keras_dml.evaluation import storage
from keras_dml.files import replacing

FORMATS = ("npz", "parquet")
_HASH = b"weights_hash"


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Some embeddings, perhaps none, with what is known about their images.

    Args:
        embeddings: float32 array `(rows, dim)`.
        ids: String array `(rows,)`.
        labels: String array `(rows,)`. Defaults to `None`.
        weights_hash: String, the hash of the weights that made them. Defaults
            to `None`, unknown.
    """

    embeddings: np.ndarray
    ids: np.ndarray
    labels: np.ndarray | None = None
    weights_hash: str | None = None

    def __len__(self) -> int:
        return len(self.ids)


def check_format(kind: str) -> None:
    """Refuses a format that is unknown or cannot be written here.

    Raises:
        UsageError: If it is none of `FORMATS`, or pyarrow is missing.
    """
    if kind not in FORMATS:
        raise UsageError(
            f"`--format` must be one of {', '.join(FORMATS)}. "
            f"Received: {kind!r}."
        )
    if kind == "parquet":
        import_parquet()


def write_rows(path: str | os.PathLike[str], rows: Rows) -> None:
    """Writes a file, whole or not at all; its suffix says in which format."""
    path = Path(path)
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {"embeddings": rows.embeddings}
        if rows.labels is not None:
            arrays["labels"] = rows.labels
        if rows.weights_hash is not None:
            arrays["hash"] = np.array(rows.weights_hash)
        storage.write_npz(path, **arrays, ids=rows.ids)
        return
    parquet = import_parquet()
    with replacing(path) as temporary:
        parquet.write_table(to_table(rows), temporary)


def read_rows(path: str | os.PathLike[str]) -> Rows:
    """Reads a file that `write_rows` wrote.

    Raises:
        UsageError: If it is missing, damaged, or not such a file.
    """
    path = Path(path)
    if path.suffix == ".npz":
        arrays = read_arrays(path, ("embeddings", "ids"), ("labels", "hash"))
        stored = arrays.get("hash")
        return Rows(
            arrays["embeddings"],
            arrays["ids"],
            arrays.get("labels"),
            None if stored is None else str(stored),
        )
    return _read_parquet(path)


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """How many rows a file has, or `None` if it is missing or damaged."""
    path = Path(path)
    if not path.is_file():
        return None
    if path.suffix == ".npz":
        return _count_npz(path)
    parquet = import_parquet()
    try:
        return parquet.read_metadata(path).num_rows
    except (OSError, ValueError):
        return None


def to_table(rows: Rows) -> Any:
    """The rows as a table of pyarrow."""
    import pyarrow

    dim = rows.embeddings.shape[1]
    values = pyarrow.array(rows.embeddings.reshape(-1), pyarrow.float32())
    columns = {"id": pyarrow.array(rows.ids.tolist(), pyarrow.string())}
    if rows.labels is not None:
        labels = rows.labels.tolist()
        columns["label"] = pyarrow.array(labels, pyarrow.string())
    columns["embedding"] = pyarrow.FixedSizeListArray.from_arrays(values, dim)
    stored = rows.weights_hash
    metadata = {} if stored is None else {_HASH: stored.encode()}
    return pyarrow.table(columns).replace_schema_metadata(metadata)


def import_parquet() -> Any:
    """The Parquet part of pyarrow.

    Raises:
        UsageError: If pyarrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "Parquet files need pyarrow, which is not installed. Install it "
            "with pip install 'keras-dml[parquet]', or use `.npz` files."
        ) from error
    return pyarrow.parquet


def _read_parquet(path):
    parquet = import_parquet()
    try:
        table = parquet.read_table(path)
        embeddings = table["embedding"].combine_chunks()
        dim = embeddings.type.list_size
        values = embeddings.flatten().to_numpy().reshape(-1, dim)
        ids = table["id"].to_pylist()
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {os.fspath(path)!r}.") from error
    except (OSError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UsageError(
            f"{path} must be a Parquet file with the columns `id` and "
            f"`embedding`, a list of fixed size. Received: {reason}."
        ) from error
    labels = None
    if "label" in table.column_names:
        labels = np.asarray(table["label"].to_pylist(), str)
    stored = (table.schema.metadata or {}).get(_HASH)
    return Rows(
        np.asarray(values, np.float32),
        np.asarray(ids, str),
        labels,
        None if stored is None else stored.decode(),
    )


def _count_npz(path):
    """Of the header alone; the end of an archive says that it is whole."""
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open("embeddings.npy") as member,
        ):
            np.lib.format.read_magic(member)
            shape, _, _ = np.lib.format.read_array_header_1_0(member)
            return shape[0]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
