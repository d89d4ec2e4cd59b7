"""What arms are compared under."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from keras_dml.comparison.records import RunRecord
from keras_dml.wording import source_title

Key = TypeVar("Key")


class Network(NamedTuple):
    """Data and network: results of different ones never share a column.

    Args:
        source: Name or path of the data.
        backbone: Name of the network.
        weights: What the network started from.
    """

    source: str
    backbone: str
    weights: str

    @property
    def title(self) -> str:
        """Data, network and weights in words."""
        start = (
            "from scratch"
            if self.weights in ("none", "")
            else f"weights `{self.weights}`"
        )
        return f"{source_title(self.source)}, {self.backbone}, {start}"


class Experiment(NamedTuple):
    """Everything that arms have in common when one is called better.

    Args:
        source: Name or path of the data.
        backbone: Name of the network.
        weights: What the network started from.
        dim: Integer, the embedding size.
    """

    source: str
    backbone: str
    weights: str
    dim: int

    @property
    def title(self) -> str:
        """Data, network, weights and embedding size in words."""
        return f"{Network(*self[:3]).title}, {self.dim}-d"


def network_of(record: RunRecord) -> Network:
    """Data and network of a run."""
    return Network(record.source, record.backbone, record.weights)


def experiment_of(record: RunRecord) -> Experiment:
    """The experiment that a run belongs to."""
    return Experiment(*network_of(record), record.dim)


def grouped(
    records: Iterable[RunRecord], key: Callable[[RunRecord], Key]
) -> dict[Key, list[RunRecord]]:
    """Runs by what `key` says of them, in the order they first appear.

    Example:

    >>> by_arm = grouped(records, lambda record: record.arm)
    """
    groups: dict[Key, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def by_arm(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs by arm, in the order they first appear."""
    return grouped(records, lambda record: record.arm)


def trained_runs(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Runs without those that only put the folds of others side by side.

    Under cross-validation every training has a fold; a record without one is
    of the concatenated embeddings of all folds.
    """
    records = list(records)
    has_folds = any(record.fold is not None for record in records)
    return [run for run in records if not has_folds or run.fold is not None]
