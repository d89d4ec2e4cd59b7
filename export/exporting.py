"""Exports an embedder in several formats and compares each one with it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.brief import Brief
from keras_dml.console import logger
from keras_dml.errors import RunError, UsageError
from keras_dml.export.artifact import (
    REJECTED,
    ExportFolder,
    check_output,
    put_in_place,
    read_manifest,
    temporary_folder,
)
from keras_dml.export.formats import choose_formats
from keras_dml.export.index_parity import index_parity
from keras_dml.export.options import ExportOptions
from keras_dml.export.parity import REPORT, describe_drops, parity
from keras_dml.files import write_json
from keras_dml.wording import listed, metric_title, percent

Row = dict[str, Any]
# A smaller loss is not worth a sentence.
NOTICED = 0.005
JUDGED = ("map@r", "recall@1")
# Nor is a size that is larger than this share of the embedder's.
SMALLER = 0.95


class ExportResult(Brief, list[Row]):
    """The comparison of exported artifacts with their embedder.

    It is a list of the rows of `parity`: first that of the embedder, then
    one per artifact.

    Args:
        rows: List of dicts with the same keys; the first key is "artifact".
        folder: The folder of the artifacts.
        of: Integer, how many test images there are; the rows compare on some
            of them. Defaults to `None`, unknown.
        trained: Whether the classes of these images trained the embedder.
            Defaults to `False`.
        has_threshold: Whether the manifests say which distance is a match.
            Defaults to `False`.
        metric: What embeddings are compared by, `"cosine"` or `"euclidean"`.
            Defaults to `"cosine"`.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        folder: Path,
        of: int | None = None,
        trained: bool = False,
        has_threshold: bool = False,
        metric: str = "cosine",
    ) -> None:
        super().__init__(rows)
        self.folder = folder
        self.of = of
        self.trained = trained
        self.has_threshold = has_threshold
        self.metric = metric

    @property
    def models(self) -> list[Path]:
        """What clients load: a file, or the folder of a SavedModel."""
        folders = [self.folder / row["artifact"] for row in self[1:]]
        return [next(one.glob("embedder.*"), one) for one in folders]

    @property
    def worse(self) -> list[str]:
        """The artifacts that lose 0.005 or more of MAP@R or of R@1."""
        return [row["artifact"] for row in self[1:] if self._lost(row)]

    def _lost(self, row: Row) -> list[str]:
        """The metrics of which an artifact loses as much."""
        own = self[0]
        return [
            name
            for name in JUDGED
            if name in own and own[name] - row[name] >= NOTICED
        ]

    def conclusions(self) -> list[str]:
        """Returns a sentence on each artifact: how well it retrieves, its size.

        Without labels to compare retrieval there are none.
        """
        own, *exported = self
        if "map@r" not in own:
            return []
        sentences = []
        for row in exported:
            lost = self._lost(row)
            good = "worse than" if lost else "as good as"
            found = listed(
                f"{metric_title(name)} {row[name]:.3f} against {own[name]:.3f}"
                for name in lost or ["map@r"]
            )
            size = row["megabytes"] / own["megabytes"]
            smaller = (
                f", in {percent(size)} of its size" if size < SMALLER else ""
            )
            sentences.append(
                f"{row['artifact']} is {good} the trained network: "
                f"{found}{smaller}."
            )
        return sentences

    def _brief_title(self) -> str:
        return f"ExportResult in {self.folder}"

    def _brief_rows(self) -> list[Row]:
        return list(self)


def export_embedder(
    embedder: keras.Model,
    formats: str | Sequence[str],
    output: str | Path,
    images: np.ndarray,
    labels: np.ndarray | None = None,
    options: ExportOptions | None = None,
    *,
    check: Callable[[], None] | None = None,
    **changes: Any,
) -> ExportResult:
    """Exports an embedder and compares each artifact with it.

    Every artifact is a folder `output/<name>`, which holds its comparison as
    `parity.json`. Artifacts are moved to their places, and replace earlier
    ones, only after all of them are written and compared.

    Args:
        embedder: Model of square images with values in 0..255.
        formats: One or more of `"saved_model"`, `"litert"` and `"onnx"`.
        output: Folder of the artifacts.
        images: Array `(n, height, width, channels)` of real images to compare
            on, with values in 0..255, resized as in the evaluation.
        labels: Integer array `(n,)`, to compare retrieval. Defaults to `None`.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        check: Function called before any artifact is moved to its place. If
            it raises, `output` stays unchanged. Defaults to `None`.
        **changes: Arguments of `ExportOptions` that override `options`.

    Returns:
        `ExportResult`, the rows of `parity`. If an artifact has an index, the
        rows also have "ann_recall@10" (or a smaller number) and
        "index_recall@1", see `index_parity`; both are `None` for artifacts
        without an index.

    Raises:
        UsageError: If a format or option is unknown, a package is missing,
            `max_drop` is given without labels, an option belongs to a format
            that is not written, `output` holds other files, or another
            process is exporting to it.
        RunError: If a format cannot express the model, or the retrieval of an
            artifact drops by more than `max_drop`. Such an artifact is kept as
            `output/<name>.rejected`.

    Example:

    ```python
    rows = export_embedder(
        embedder, ["saved_model", "litert"], "export", images, labels
    )
    ```
    """
    options = ExportOptions.of(options, changes)
    output = Path(output)
    chosen = choose_formats(formats, options)
    for one in chosen:
        one.check(options)
    if options.max_drop is not None and labels is None:
        raise UsageError(
            "`max_drop` needs `labels` that images share. Received: "
            "labels=None. Give them, or leave `max_drop` out."
        )
    if not options.force:
        check_output(output)
    with temporary_folder(output / ".export.candidate") as staging:
        folders = {}
        for one in chosen:
            for name, artifact in one.artifacts(options).items():
                aim = f", for {one.runs_on}" if one.runs_on else ""
                logger.info("Exporting %s%s ...", name, aim)
                folders[name] = one.make(embedder, staging / name, artifact)
        logger.info(
            "Comparing %s with the trained network on %s images ...",
            listed(folders),
            f"{len(images):,}",
        )
        rows, drops = _compare(embedder, folders, images, labels, options)
        if check is not None:
            check()
        _put_in_place(folders, output, drops, options.force)
    if drops:
        rejected = (
            f"{name} has {drop}; it is kept as {output / name}{REJECTED}."
            for name, drop in drops.items()
        )
        raise RunError(
            f"Retrieval drops by more than `max_drop` {options.max_drop:g}: "
            + " ".join(rejected)
        )
    return ExportResult(rows, output)


def _compare(
    embedder: keras.Model,
    folders: Mapping[str, Path],
    images: np.ndarray,
    labels: np.ndarray | None,
    options: ExportOptions,
) -> tuple[list[Row], dict[str, str]]:
    """Compares all artifacts, and writes the reports into their folders.

    Returns:
        Tuple of the rows of all artifacts, and a dict of the names of those
        that drop too much to a description of the drop.
    """
    rows = parity(embedder, folders, images, labels)
    reports = {row["artifact"]: [rows[0], row] for row in rows[1:]}
    drops = {}
    for name, report in reports.items():
        folder = folders[name]
        if "index" in read_manifest(folder):
            index = index_parity(folder, options.gallery)
            report.append({"artifact": "index", **index})
            found = f"ann_recall@{index['k']}"
            for row in rows:
                row.setdefault(found, None)
                row.setdefault("index_recall@1", None)
            report[1][found] = index[found]
            report[1]["index_recall@1"] = index["recall@1"]
        drop = describe_drops(report, options.max_drop)
        if drop:
            drops[name] = drop
    for name, report in reports.items():
        write_json(folders[name] / REPORT, report)
    return rows, drops


def _put_in_place(
    folders: Mapping[str, Path],
    output: Path,
    drops: Mapping[str, str],
    force: bool,
) -> None:
    for name, folder in folders.items():
        rejected = output / f"{name}{REJECTED}"
        if name in drops:
            put_in_place(folder, rejected, force)
        else:
            put_in_place(folder, output / name, force)
            if ExportFolder(rejected).exists:
                shutil.rmtree(rejected)
