"""How ScaNN searches a set of references of a given size."""

import dataclasses
import math
from typing import Self

from keras_dml.errors import UsageError

SHAPES = ("brute_force", "hashing", "tree")
# ScaNN's own rules of thumb.
HASHING_FROM = 20_000
TREE_FROM = 100_000
# The hashes have 16 centres, which as many references must train.
MIN_TRAINED = 16


@dataclasses.dataclass(frozen=True)
class ScannShape:
    """The searcher that ScaNN trains for a set of references.

    Args:
        name: `"brute_force"`, `"hashing"` or `"tree"`.
        num_leaves: Integer, into how many leaves a tree parts the references;
            0 without a tree.

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
        """Follows ScaNN's rules where nothing is asked for.

        Args:
            num_references: Integer.
            name: String or `None` to go by the number of references. Fewer
                than 16 references are compared by brute force in any case:
                they cannot train a hash. Defaults to `None`.
            num_leaves: Integer or `None` for the square root of the number of
                references. Asks for a tree when `name` is `None`. Defaults to
                `None`.

        Example:

        >>> ScannShape.choose(1_000_000)
        ScannShape(name='tree', num_leaves=1000)
        """
        if name is None:
            name = _name_by_size(num_references)
            if num_leaves is not None:
                name = "tree"
        if num_references < MIN_TRAINED:
            name = "brute_force"
        if name != "tree":
            return cls(name)
        if num_leaves is None:
            num_leaves = round(math.sqrt(num_references))
        return cls(name, min(num_leaves, num_references))

    @property
    def default_leaves_to_search(self) -> int:
        """A tenth of the leaves, at least one."""
        return max(1, math.ceil(self.num_leaves / 10))


def check_shape(name: str | None, num_leaves: int | None) -> None:
    """Refuses a shape that ScaNN does not have."""
    if name is not None and name not in SHAPES:
        raise UsageError(
            f"`shape` must be one of {SHAPES}, or `None` to go by the number "
            f"of references. Received: shape={name!r}. Choose one of them."
        )
    if num_leaves is not None and name not in (None, "tree"):
        raise UsageError(
            "`num_leaves` is for a tree. Received: "
            f"num_leaves={num_leaves} with shape={name!r}. Leave one of them "
            "out."
        )


def _name_by_size(num_references: int) -> str:
    if num_references < HASHING_FROM:
        return "brute_force"
    return "hashing" if num_references < TREE_FROM else "tree"
