"""What the runs of a plan measured: records, and one tidy CSV."""

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.records import RunRecord
from keras_dml.files import write_text
from keras_dml.run.folder import RunFolder

COLUMNS = (
    "run",
    "source",
    "backbone",
    "weights",
    "dim",
    "arm",
    "recipe",
    "seed",
    "fold",
    "status",
    "oracle",
    "train_seconds",
    "metric",
    "value",
    "before",
    "pretrained",
    "validation",
    "error",
)


def collect(
    jobs: Sequence[Job], folder: Path, failed: Mapping[str, str] | None = None
) -> list[RunRecord]:
    """The records of a plan's runs, as far as they are done.

    Args:
        jobs: The runs.
        folder: The plan's folder.
        failed: Last words of failed runs, by name. Defaults to `None`.
    """
    return [_record(job, folder, failed or {}) for job in jobs]


def write_results(records: Sequence[RunRecord], path: Path) -> None:
    """Writes one row for each run and metric; a run without any has one too.

    Swept settings are columns named by their dotted keys.
    """
    factors = list(dict.fromkeys(key for r in records for key in r.factors))
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, [*COLUMNS[:8], *factors, *COLUMNS[8:]], lineterminator="\n"
    )
    writer.writeheader()
    for record in records:
        common = {
            **{key: getattr(record, key) for key in COLUMNS[:12]},
            **record.factors,
            "error": record.error,
        }
        for metric in record.after or [""]:
            writer.writerow(
                common
                | {
                    "metric": metric,
                    "value": record.after.get(metric, ""),
                    "before": record.before.get(metric, ""),
                    "pretrained": record.pretrained.get(metric, ""),
                    "validation": record.validation.get(metric, ""),
                }
            )
    write_text(path, buffer.getvalue())


def _record(job: Job, folder: Path, failed: Mapping[str, str]) -> RunRecord:
    run = RunFolder(folder / "runs" / job.run)
    if not run.finished:
        return dataclasses.replace(
            job.record,
            status="failed" if job.run in failed else "left",
            error=failed.get(job.run, ""),
            folder=run.path,
        )
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))
    return dataclasses.replace(
        job.record,
        status="done",
        oracle=metrics["oracle"],
        pretrained=metrics["pretrained"],
        before=metrics["before"],
        after=metrics["after"],
        validation=metrics["validation"],
        train_seconds=metrics["train_seconds"],
        folder=run.path,
    )
