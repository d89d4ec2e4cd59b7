"""Wraps ScaNN's searcher, which finds row numbers, not ids."""

import bisect
import dataclasses
import functools
import math
import os
import tempfile
import types
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from keras_dml.errors import UsageError

SHAPES = ("brute_force", "hashing", "tree")
# ScaNN's own rules of thumb.
HASHING_FROM = 20_000
TREE_FROM = 100_000
# The hashes have 16 centers; training them takes at least 16 references.
MIN_TRAINED = 16


@dataclasses.dataclass(frozen=True)
class ScannShape:
    """The kind of searcher that ScaNN trains for a set of references.

    Args:
        name: `"brute_force"`, `"hashing"` or `"tree"`.
        num_leaves: Integer, the number of leaves of the tree; 0 without a
            tree.

    Reference:
        Rules of thumb in ScaNN's `docs/algorithms.md`: brute force below
        20,000 references, asymmetric hashing and rescoring below 100,000, and
        a tree of about `sqrt(n)` leaves beyond.
    """

    name: str
    num_leaves: int = 0

    @classmethod
    def choose(
        cls,
        num_references: int,
        name: str | None = None,
        num_leaves: int | None = None,
    ) -> Self:
        """Chooses a shape; ScaNN's rules set what is `None`.

        Args:
            num_references: Integer.
            name: String or `None` to choose by the number of references.
                Fewer than 16 references are always searched by brute force:
                they cannot train a hash. Defaults to `None`.
            num_leaves: Integer or `None` for the square root of the number of
                references. A number requests a tree if `name` is `None`.
                Defaults to `None`.

        Example:

        >>> ScannShape.choose(1_000_000)
        ScannShape(name='tree', num_leaves=1000)
        """
        if name is None and num_leaves is not None:
            name = "tree"
        elif name is None:
            sizes = (HASHING_FROM, TREE_FROM)
            name = SHAPES[bisect.bisect(sizes, num_references)]
        if num_references < MIN_TRAINED:
            name = "brute_force"
        if name != "tree":
            return cls(name)
        num_leaves = num_leaves or round(math.sqrt(num_references))
        return cls(name, min(num_leaves, num_references))

    @property
    def default_leaves_to_search(self) -> int:
        """A tenth of the leaves, at least one."""
        return max(1, math.ceil(self.num_leaves / 10))


ASSETS = "scann_assets.pbtxt"
DATASET = "dataset.npy"
# ScaNN requires both for training; every search passes its own values.
NEIGHBORS = 10
REORDER = 100
QUERIES_PER_TASK = 256
ROWS_PER_TASK = 256


def scann_distance(metric: str) -> str:
    """Returns ScaNN's name of what orders references as a metric does."""
    return "squared_l2" if metric == "euclidean" else "dot_product"


@functools.cache
def import_scann() -> types.ModuleType:
    """Imports and returns ScaNN's NumPy interface.

    Raises:
        UsageError: If ScaNN cannot be loaded.
    """
    try:
        from scann.scann_ops.py import scann_ops_pybind
    # With a TensorFlow that it was not built for, ScaNN raises an error of
    # TensorFlow, which is not an ImportError.
    except Exception as error:
        raise UsageError(
            "`ScannIndex` needs ScaNN 1.4.2, which cannot be loaded here "
            f"({type(error).__name__}). Install it by "
            "`pip install 'keras-dml[scann]'`: it runs on Linux with an "
            "x86-64 processor that has AVX, or an ARM one, and beside "
            "TensorFlow 2.20 only. Elsewhere use `ExactIndex`."
        ) from error
    return scann_ops_pybind


def configure(
    builder: Any,
    shape: ScannShape,
    dim: int,
    dimensions_per_block: int = 2,
    anisotropic_threshold: float = 0.2,
) -> Any:
    """Configures a builder of ScaNN, for NumPy or TensorFlow.

    Args:
        builder: `ScannBuilder`.
        shape: `ScannShape`.
        dim: Integer, the dimensions of a row.
        dimensions_per_block: Integer, how many dimensions share a hash.
            Defaults to `2`.
        anisotropic_threshold: Float, the threshold of the hashing loss.
            Defaults to `0.2`.

    Returns:
        The builder.
    """
    builder.set_n_training_threads(os.cpu_count())
    if shape.name == "tree":
        # Random initialization would draw other centers in every process.
        builder.tree(
            shape.num_leaves, shape.default_leaves_to_search, random_init=False
        )
    if shape.name == "brute_force":
        builder.score_brute_force()
    else:
        builder.score_ah(
            min(dimensions_per_block, dim),
            anisotropic_quantization_threshold=anisotropic_threshold,
        )
        builder.reorder(REORDER)
    return builder


@final
class ScannSearcher:
    """Finds the rows nearest to a query; rows are numbered from 0.

    Args:
        native: `ScannNumpy`, ScaNN's searcher.
        shape: The `ScannShape` of the searcher.
    """

    def __init__(self, native: Any, shape: ScannShape) -> None:
        self._native = native
        self.shape = shape

    @classmethod
    def train(
        cls, rows: np.ndarray, distance: str, shape: ScannShape, **hashing: Any
    ) -> Self:
        """Trains a searcher; the same rows train the same searcher.

        Args:
            rows: Float32 array `(num_references, dim)`; ScaNN copies it.
            distance: `"dot_product"` or `"squared_l2"`.
            shape: `ScannShape`.
            **hashing: Further arguments of `configure`.
        """
        builder = import_scann().builder(rows, NEIGHBORS, distance)
        configure(builder, shape, rows.shape[1], **hashing)
        try:
            return cls(builder.build().searcher, shape)
        except RuntimeError as error:
            raise UsageError(
                f"ScaNN must be able to train {shape} on {len(rows)} rows of "
                f"{rows.shape[1]} dimensions. Received: {error}. Choose "
                "another shape, or `ExactIndex`."
            ) from error

    def search(
        self, queries: np.ndarray, k: int, leaves_to_search: int, reorder: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the numbers of the nearest rows and ScaNN's distances.

        A query whose leaves hold fewer than `k` rows searches all leaves.

        Args:
            queries: Float32 array `(num_queries, dim)`.
            k: Integer, at most the number of rows.
            leaves_to_search: Integer, how many leaves of a tree to search.
            reorder: Integer, how many candidates to score again in float32,
                at least `k`.

        Returns:
            Tuple of an int64 and a float32 array `(num_queries, k)`.
        """

        def nearest(
            queries: np.ndarray, leaves: int
        ) -> tuple[np.ndarray, np.ndarray]:
            rows, distances = self._native.search_batched(
                queries, k, reorder, leaves, True, QUERIES_PER_TASK
            )
            missing = ((0, 0), (0, k - rows.shape[1]))
            return (
                np.pad(rows.astype(np.int64), missing),
                np.pad(distances, missing, constant_values=np.nan),
            )

        rows, distances = nearest(queries, leaves_to_search)
        short = np.isnan(distances).any(axis=1)
        if short.any():
            rows[short], distances[short] = nearest(
                queries[short], self.shape.num_leaves
            )
        return rows, distances

    def append(self, rows: np.ndarray) -> None:
        """Appends float32 rows `(num_rows, dim)`."""
        self._native.upsert([None] * len(rows), list(rows), ROWS_PER_TASK)

    def delete(self, row: int) -> None:
        """Deletes a row; the last row takes its number."""
        self._native.delete([row])

    def rows(self) -> np.ndarray:
        """Returns float32 rows `(num_rows, dim)`, through a temporary file."""
        with tempfile.TemporaryDirectory() as folder:
            self._native.serialize(folder, True)
            return np.load(Path(folder, DATASET), allow_pickle=False)

    def write(self, folder: Path) -> dict[str, int]:
        """Writes ScaNN's files and returns the size in bytes of each."""
        self._native.serialize(os.fspath(folder), True)
        for path in folder.iterdir():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        return _sizes(folder)

    @classmethod
    def read(
        cls, folder: Path, sizes: dict[str, int], shape: ScannShape
    ) -> Self:
        """Reads the files that `write` wrote, and no others.

        Args:
            folder: The folder of the files.
            sizes: Dict of file names to sizes in bytes, as `write` returns it.
            shape: The `ScannShape` of the searcher.

        Raises:
            UsageError: If a file is missing, truncated or unexpected, or
                ScaNN cannot read the files.
        """
        scann = import_scann()
        if _sizes(folder) != sizes or ASSETS not in sizes:
            raise _unreadable(folder, "missing, cut or foreign files")
        text = (folder / ASSETS).read_text(encoding="utf-8")
        if not _named_files(text) <= set(sizes):
            raise _unreadable(folder, "a list of assets that names others")
        try:
            native = scann.scann_pybind.ScannNumpy(os.fspath(folder), text)
        except RuntimeError as error:
            raise _unreadable(folder, str(error)) from error
        return cls(native, shape)

    def __len__(self) -> int:
        return self._native.size()


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*")}


def _named_files(assets: str) -> set[str]:
    from google.protobuf import text_format
    from scann.scann_ops import scann_assets_pb2

    parsed = text_format.Parse(assets, scann_assets_pb2.ScannAssets())
    return {asset.asset_path for asset in parsed.assets}


def _unreadable(folder: Path, received: str) -> UsageError:
    return UsageError(
        f"{os.fspath(folder)!r} must hold ScaNN's files as they were saved. "
        f"Received: {received}. Build the index again."
    )
