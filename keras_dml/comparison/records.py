"""The settings and the outcome of every run of a plan, and `results.csv`."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from keras_dml.files import csv_text, is_locked, write_text
from keras_dml.run.folder import RunFolder
from keras_dml.wording import counted, source_title

Key = TypeVar("Key")

# The states of a run, in the order in which they are told.
STATUSES = ("done", "running", "to do", "failed")
# Fields of a record that are columns of `results.csv`. The columns of swept
# settings come after `_WHAT`.
_WHAT = ("run", "source", "backbone", "weights", "dim", "arm", "recipe", "seed")
_MEASURED = ("oracle", "train_seconds")
_OUTCOME = ("fold", "concatenated", "status", *_MEASURED)
# The other fields of a record, which hold metrics, and their columns.
_METRICS = {
    "after": "value",
    "before": "before",
    "pretrained": "pretrained",
    "validation": "validation",
}


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The settings and the outcome of one run of a plan.

    Args:
        run: Name of the run's folder.
        source: Name or path of the data.
        backbone: Name of the network.
        weights: The weights that the network starts from.
        dim: Integer, the length of an embedding.
        arm: Row of a table: the arm with the values of `factors`.
        recipe: Name of the recipe.
        line: The arm without its factors: one line of a figure. Defaults to
            `""`.
        factors: Mapping of dotted keys to the values of the plan's `grid`.
            Defaults to none.
        seed: Integer, the seed. Defaults to `0`.
        fold: Number of the fold. Defaults to `None`: no cross-validation.
        concatenated: Integer, the number of folds whose embeddings are
            measured side by side. Defaults to `0`: a training of its own.
        status: One of `STATUSES`. Defaults to `"to do"`.
        oracle: Whether the epoch was chosen on the test classes. Defaults to
            `False`.
        pretrained: Metrics of the features without a head.
        before: Metrics of the embedder before training.
        after: Metrics on the test classes.
        validation: Metrics of the chosen epoch on the validation classes.
        train_seconds: Seconds of training. Defaults to `0.0`.
        folder: The run folder. Defaults to `None`.
        error: The reason why the run failed. Defaults to `""`.
    """

    run: str
    source: str
    backbone: str
    weights: str
    dim: int
    arm: str
    recipe: str
    line: str = ""
    factors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    fold: int | None = None
    concatenated: int = 0
    status: str = "to do"
    oracle: bool = False
    pretrained: Mapping[str, float] = dataclasses.field(default_factory=dict)
    before: Mapping[str, float] = dataclasses.field(default_factory=dict)
    after: Mapping[str, float] = dataclasses.field(default_factory=dict)
    validation: Mapping[str, float] = dataclasses.field(default_factory=dict)
    train_seconds: float = 0.0
    folder: Path | None = None
    error: str = ""


class Experiment(NamedTuple):
    """The settings that arms must share before they can be compared.

    Args:
        source: Name or path of the data.
        backbone: Name of the network.
        weights: The weights that the network starts from.
        dim: Integer, the length of an embedding. Defaults to `None`: any
            length, as in a table of results.
        concatenated: Integer, the number of folds whose embeddings are
            measured side by side. Defaults to `0`: those of one network.
    """

    source: str
    backbone: str
    weights: str
    dim: int | None = None
    concatenated: int = 0

    @property
    def title(self) -> str:
        """Data, network, weights, embedding size and folds in words."""
        scratch = self.weights in ("none", "")
        start = "from scratch" if scratch else f"weights `{self.weights}`"
        size = "" if self.dim is None else f", embeddings of {self.dim} numbers"
        title = f"{source_title(self.source)}, {self.backbone}, {start}{size}"
        folds = f", {counted(self.concatenated, 'fold')} concatenated"
        return title + (folds if self.concatenated else "")


def network_of(record: RunRecord) -> Experiment:
    """Returns the data and the network of a run, without embedding size.

    The concatenated embeddings of folds are those of several networks, and are
    never averaged or ranked with the embeddings of one.
    """
    return Experiment(
        record.source,
        record.backbone,
        record.weights,
        concatenated=record.concatenated,
    )


def experiment_of(record: RunRecord) -> Experiment:
    """Returns the experiment that a run belongs to."""
    return network_of(record)._replace(dim=record.dim)


def grouped(
    records: Iterable[RunRecord], key: Callable[[RunRecord], Key]
) -> dict[Key, list[RunRecord]]:
    """Groups runs by `key`, in the order in which the keys first appear."""
    groups: dict[Key, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def counts_in_words(records: Iterable[RunRecord]) -> str:
    """Says how many runs there are of each state."""
    states = {record.run: record.status for record in records}
    counts = Counter(states.values())
    parts = [
        f"{counts[status]:,} {status}"
        for status in STATUSES
        if counts[status] or status == "done"
    ]
    return f"{counted(len(states), 'run')}: {', '.join(parts)}"


def by_arm(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Groups runs by arm, in the order in which the arms first appear."""
    return grouped(records, lambda record: record.arm)


def trained_runs(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Drops the records that only concatenate the folds of other runs."""
    return [run for run in records if not run.concatenated]


def collect(
    records: Iterable[RunRecord],
    folder: Path,
    failed: Mapping[str, str] | None = None,
) -> list[RunRecord]:
    """Adds to each record the results that its run has so far.

    Args:
        records: Records of the runs.
        folder: The plan's folder.
        failed: Mapping from each failed run to the reason. Defaults to
            `None`.
    """
    return [_collected(record, folder, failed or {}) for record in records]


def write_results(records: Sequence[RunRecord], path: Path) -> None:
    """Writes one row for each run and metric; runs without metrics have one.

    Every setting of the plan's `grid` is a column under its dotted key.
    """
    factors = dict.fromkeys(key for r in records for key in r.factors)
    rows: list[list[Any]] = [
        [*_WHAT, *factors, *_OUTCOME, "metric", *_METRICS.values(), "error"]
    ]
    for record in records:
        what = [getattr(record, key) for key in _WHAT]
        what += [record.factors.get(factor, "") for factor in factors]
        what += [getattr(record, key) for key in _OUTCOME]
        for metric in record.after or [""]:
            values = [getattr(record, key).get(metric, "") for key in _METRICS]
            rows.append([*what, metric, *values, record.error])
    write_text(path, csv_text(rows))


def _collected(
    record: RunRecord, folder: Path, failed: Mapping[str, str]
) -> RunRecord:
    run = RunFolder(folder / "runs" / record.run)
    if not run.finished:
        status, error = "to do", failed.get(record.run, "")
        if record.run in failed:
            status = "failed"
        elif is_locked(run.path / run.lock_name):
            status = "running"
        return dataclasses.replace(
            record, status=status, error=error, folder=run.path
        )
    metrics = run.read_metrics()
    outcome = {key: metrics[key] for key in (*_METRICS, *_MEASURED)}
    return dataclasses.replace(
        record, status="done", folder=run.path, **outcome
    )
