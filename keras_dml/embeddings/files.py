"""Writes and reads embeddings as one file, `.npz` or Apache Parquet.

An `.npz` file has the keys `embeddings` and `ids` and, if they are known,
`labels`, `role`, `class_names` and `hash`, the hash of the weights that made
the embeddings. A Parquet file has the columns `id` and `embedding` and, if they
are known, `label` and `role`; its metadata holds the hash. Neither holds a
pickle. Where labels are sets, those of an image are one text, joined by `|`,
and a key `label_sets`, of Parquet's metadata, says so.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.checks import a_path, one_of, require
from keras_dml.embeddings.checks import check_texts
from keras_dml.embeddings.embedding_set import EmbeddingSet, split_names
from keras_dml.errors import UsageError, reason_of
from keras_dml.files import replacing
from keras_dml.npz import check_fits, count_npz_rows, read_npz, write_npz

FILE_FORMATS = ("npz", "parquet")
# The key of a file whose texts of labels are sets.
LABEL_SETS = "label_sets"
_OPTIONAL = ("labels", "ids", "role", "class_names", "hash", LABEL_SETS)
_WORDS = ("id", "label", "role")
_HASH = b"weights_hash"


def check_format(kind: str) -> None:
    """Raises if a format is unknown or cannot be written here.

    Raises:
        UsageError: If the format is not one of `FILE_FORMATS`, or pyarrow is
            missing.
    """
    one_of("file_format", kind, FILE_FORMATS)
    if kind == "parquet":
        import_parquet()


def save_embeddings(
    path: str | os.PathLike[str], embeddings: EmbeddingSet, **more: Any
) -> None:
    """Writes embeddings to a file, whole or not at all.

    Args:
        path: The file to write or replace: Parquet if its name ends in
            `.parquet`, else `.npz`.
        embeddings: `EmbeddingSet`. Parquet stores ids and classes as strings.
        **more: Further arrays of an `.npz` file, which `load_embeddings`
            ignores.

    Raises:
        UsageError: If an argument is of another kind, labels are sets of other
            than strings without `|`, or the file is Parquet, and labels are a
            matrix, a text is no UTF-8 or pyarrow is missing.

    Example:

    ```python
    save_embeddings("pets.npz", EmbeddingSet(vectors, classes))
    ```
    """
    path = a_path("path", path)
    require(not path.is_dir(), "path", "a file, not a folder", str(path))
    wanted = "an `EmbeddingSet`"
    require(
        isinstance(embeddings, EmbeddingSet), "embeddings", wanted, embeddings
    )
    sets = has_sets(embeddings)
    if path.suffix.lower() == ".parquet":
        parquet = import_parquet()
        table = to_table(embeddings)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            parquet.write_table(table, temporary, write_page_checksum=True)
        return
    arrays = {
        "embeddings": embeddings.embeddings,
        "labels": embeddings.names if sets else embeddings.labels,
        "ids": embeddings.ids,
        "role": embeddings.role if embeddings.has_gallery else None,
        "class_names": embeddings.class_names,
        "hash": embeddings.weights_hash,
        LABEL_SETS: True if sets else None,
        **more,
    }
    known = {key: one for key, one in arrays.items() if one is not None}
    write_npz(path, **known)


def has_sets(embeddings: EmbeddingSet) -> bool:
    """Returns whether labels are sets, whose names a file joins.

    Raises:
        UsageError: If the joined names would not be the same sets again.
    """
    labels = embeddings.labels
    if labels is None or labels.dtype != object:
        return False
    if (split_names(embeddings.names) != labels).any():
        raise UsageError(
            "`labels` of a file must be integers, strings, sets of strings "
            "without `|`, or a 0-1 matrix. Received: labels of several kinds, "
            "or other sets. Give images of several labels a matrix and the "
            "`class_names` of its columns."
        )
    return True


def read_file(path: str | os.PathLike[str]) -> EmbeddingSet:
    """Reads the embeddings of a file.

    Raises:
        UsageError: If the file is missing, damaged or of another kind, holds
            a pickle, or its arrays do not fit each other.
    """
    if Path(path).suffix.lower() == ".parquet":
        return _read_parquet(path)
    arrays = read_npz(path, ("embeddings",), _OPTIONAL)
    stored = arrays.pop("hash", None)
    weights_hash = None if stored is None else str(stored)
    if arrays.pop(LABEL_SETS, None) is not None and "labels" in arrays:
        arrays["labels"] = split_names(arrays["labels"])
    return EmbeddingSet(**arrays, weights_hash=weights_hash)


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """Counts the rows of a file; `None` if it is missing or damaged."""
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        return count_npz_rows(path, "embeddings")
    parquet = import_parquet()
    try:
        return parquet.read_metadata(path).num_rows
    except Exception:
        return None


def to_table(embeddings: EmbeddingSet) -> Any:
    """Returns the rows as a table of pyarrow."""
    import pyarrow

    if embeddings.labels is not None and embeddings.labels.ndim > 1:
        raise UsageError(
            "A Parquet file must have one label for each image. Received: "
            f"`labels` of shape {embeddings.labels.shape}. Save an `.npz` file."
        )

    def words(values: np.ndarray) -> Any:
        try:
            return pyarrow.array(values.astype(str).tolist(), pyarrow.string())
        except UnicodeEncodeError as error:
            raise UsageError(
                "A Parquet file must hold text in UTF-8. Received: "
                f"{error.object!a}. Save an `.npz` file."
            ) from error

    columns = {"id": words(embeddings.ids)}
    if embeddings.labels is not None:
        columns["label"] = words(embeddings.names)
    if embeddings.has_gallery:
        columns["role"] = words(embeddings.role)
    columns["embedding"] = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(embeddings.embeddings.reshape(-1), pyarrow.float32()),
        embeddings.embeddings.shape[1],
    )
    stored = embeddings.weights_hash
    metadata = {} if stored is None else {_HASH: stored.encode()}
    if has_sets(embeddings):
        metadata[LABEL_SETS.encode()] = b"true"
    return pyarrow.table(columns).replace_schema_metadata(metadata)


def import_parquet() -> Any:
    """Imports and returns the Parquet module of pyarrow.

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


def _as_texts(column: Any, name: str) -> np.ndarray:
    if column.null_count:
        raise ValueError("a row without a text")
    # A column of numbers is none yet.
    column = column.combine_chunks().dictionary_encode()
    listed = column.dictionary.to_pylist()
    check_texts(listed, name)
    texts = np.asarray(listed, str)
    check_fits(len(column) * texts.dtype.itemsize)
    return texts[column.indices.to_numpy()]


def _count_numbers(parquet: Any, path: str | os.PathLike[str]) -> int:
    """Counts the numbers of all embeddings of a file without reading it."""
    kind = parquet.read_schema(path).field("embedding").type
    metadata = parquet.read_metadata(path)
    if hasattr(kind, "list_size"):
        return metadata.num_rows * kind.list_size
    if not hasattr(kind, "value_type"):
        raise ValueError(f"it holds {kind}, no list")
    columns = (
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    return sum(
        one.num_values
        for one in columns
        if one.path_in_schema.startswith("embedding.")
    )


def _as_rows(column: Any) -> np.ndarray:
    """Returns lists as rows, if all are equally long, as those of Beam are."""
    lists = column.combine_chunks()
    if lists.null_count:
        raise ValueError("a row without an embedding")
    if hasattr(lists.type, "list_size"):
        dim = lists.type.list_size
    else:
        lengths = np.unique(lists.value_lengths().to_numpy())
        if len(lengths) > 1:
            first, last = lengths[[0, -1]]
            raise ValueError(f"rows of {first} and of {last} numbers")
        dim = int(lengths.max(initial=0))
    return lists.flatten().to_numpy().reshape(len(lists), dim)


def _read_parquet(path: str | os.PathLike[str]) -> EmbeddingSet:
    parquet = import_parquet()
    try:
        check_fits(4 * _count_numbers(parquet, path))
        # A dictionary keeps a text of many rows once.
        table = parquet.read_table(
            path, read_dictionary=[*_WORDS], page_checksum_verification=True
        )
        values = _as_rows(table["embedding"])
        words = {
            name: _as_texts(table[name], name)
            for name in _WORDS
            if name == "id" or name in table.column_names
        }
        metadata = table.schema.metadata or {}
        if LABEL_SETS.encode() in metadata and "label" in words:
            words["label"] = split_names(words["label"])
        stored = metadata.get(_HASH)
        weights_hash = None if stored is None else stored.decode()
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no file {os.fspath(path)!r}. Give a Parquet file with "
            "the columns `id` and `embedding`."
        ) from error
    # Damaged bytes raise errors of many kinds in pyarrow.
    except Exception as error:
        raise UsageError(
            f"{path} must be a Parquet file with the columns `id` and "
            "`embedding`, lists of equally many numbers. Received: "
            f"{reason_of(error)}."
        ) from error
    return EmbeddingSet(
        values,
        words.get("label"),
        words["id"],
        words.get("role"),
        weights_hash=weights_hash,
    )
