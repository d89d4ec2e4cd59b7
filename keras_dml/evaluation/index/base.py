"""What every search index can do."""

import abc
import os
from typing import Any, ClassVar, Self

import numpy as np

from keras_dml.errors import UsageError


class Index(abc.ABC):
    """Finds the references nearest to a query.

    References go in with `build` and come and go with `add` and `remove`;
    `search` answers queries. A larger score is nearer in every index.

    A subclass in this package is known to `make_index` by its `name`.
    """

    name: ClassVar[str]

    @classmethod  # noqa: B027
    def check_available(cls) -> None:
        """Raises a `UsageError` if what the index needs is not installed."""

    @classmethod
    @abc.abstractmethod
    def recognizes(cls, path: str | os.PathLike[str]) -> bool:
        """Whether `load` is the one that reads this path."""

    @property
    @abc.abstractmethod
    def exact(self) -> bool:
        """Whether `search` never misses a nearest reference."""

    @property
    @abc.abstractmethod
    def ids(self) -> np.ndarray:
        """Ids of the references, in the order in which they were given."""

    @abc.abstractmethod
    def build(self, embeddings: Any, ids: Any = None) -> Self:
        """Takes the references in, in place of any earlier ones.

        Args:
            embeddings: Array `(num_references, dim)`.
            ids: 1D array `(num_references,)` of unique integers or strings,
                or `None` for `0, 1, 2, ...`. Defaults to `None`.

        Returns:
            The index itself.
        """

    @abc.abstractmethod
    def add(self, embeddings: Any, ids: Any) -> Self:
        """Takes more references in, beside those that are there.

        Args:
            embeddings: Array `(num_added, dim)`.
            ids: 1D array `(num_added,)` of ids that the index does not have.

        Returns:
            The index itself.

        Raises:
            UsageError: If an id is there already, or the index cannot take
                references in; the index is then as before.
        """

    @abc.abstractmethod
    def remove(self, ids: Any) -> Self:
        """Takes references out.

        Args:
            ids: 1D array of ids that the index has. At least one reference
                must be left.

        Returns:
            The index itself.

        Raises:
            UsageError: If an id is unknown, nothing would be left, or the
                index cannot take references out; the index is then as before.
        """

    @abc.abstractmethod
    def search(
        self, queries: Any, k: int, exclude_ids: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the `k` nearest references of each query.

        Args:
            queries: Array `(num_queries, dim)`.
            k: Integer; more than there are references gives all of them.
            exclude_ids: 1D array `(num_queries,)`, for each query the id of
                the reference that it may not find, usually itself. Defaults
                to `None`, which excludes nothing.

        Returns:
            Tuple `(ids, scores)` of arrays `(num_queries, k)`, nearest first.
            Where nothing else is left, the excluded reference comes last with
            the score minus infinity.
        """

    @abc.abstractmethod
    def to_exact(self) -> "Index":
        """An exact index of the same references, to measure this one by."""

    @abc.abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index, whole or not at all."""

    @classmethod
    @abc.abstractmethod
    def load(
        cls, path: str | os.PathLike[str], weights_hash: str | None = None
    ) -> Self:
        """Reads what `save` wrote.

        Args:
            path: Where the index was saved.
            weights_hash: String, the hash of the weights that embed the
                queries. An index of other weights is refused. Defaults to
                `None`, which checks nothing.
        """


def check_weights_hash(
    path: str | os.PathLike[str], stored: str | None, wanted: str | None
) -> None:
    """Raises if other weights than those in use made the embeddings."""
    if stored is not None and wanted is not None and stored != wanted:
        raise UsageError(
            "`weights_hash` must be that of the weights which made "
            f"{os.fspath(path)!r} ({stored}). Received: {wanted}. Embed the "
            "images again with the present weights."
        )
