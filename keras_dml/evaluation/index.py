"""What every search index can do."""

import abc
import os
from typing import Any, Self

import numpy as np


class Index(abc.ABC):
    """Finds the references nearest to a query.

    References go in with `build`, queries are answered by `search`. A larger
    score is nearer in every index.
    """

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
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, whole or not at all."""

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
