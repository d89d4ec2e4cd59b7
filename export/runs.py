"""Exports a run's embedder, compared on some of its test images."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import format_table, logger
from keras_dml.data.decoding import MAX_PIXELS
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import RunError, UsageError
from keras_dml.export.export_embedder import export_embedder
from keras_dml.export.gallery import Gallery
from keras_dml.export.references import MAX_K, References, check_index
from keras_dml.run.cache import weights_hash
from keras_dml.run.data import RunData, evaluation_batches, load_run_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import TrainedRun

COMPARED_IMAGES = 500
CALIBRATION_IMAGES = 200


def export_run(
    run: str | Path,
    formats: Sequence[str],
    *,
    quantize: Sequence[str] = ("none",),
    dynamic_batch: bool = False,
    with_gallery: bool = False,
    with_index: bool = False,
    index: str = "auto",
    gallery: str | Path | None = None,
    max_k: int = MAX_K,
    max_pixels: int = MAX_PIXELS,
    max_drop: float | None = None,
    output: str | Path | None = None,
    data_dir: str | Path | None = None,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Exports the embedder of a finished run and checks each artefact.

    Args:
        run: The run folder.
        formats: Any of `saved_model`, `litert` and `onnx`.
        quantize: Quantizations of LiteRT: any of `none`, `float16`,
            `dynamic_range` and `int8`, which is calibrated on images that
            the run was trained on. Defaults to `("none",)`.
        dynamic_batch: Whether LiteRT takes any number of images at once.
            Defaults to `False`.
        with_gallery: Whether the test references go beside LiteRT, to search
            on the device. Defaults to `False`.
        with_index: Whether the SavedModel searches references by itself.
            Defaults to `False`.
        index: How it does: `auto`, `exact` or `scann`, see `References`.
            Defaults to `auto`.
        gallery: What it searches: a source, all images of which go in, or
            embeddings that this run's weights have made, see
            `read_references`. Defaults to `None`, the run's test references.
        max_k: The most neighbours that a request may ask for. Defaults to
            `100`.
        max_pixels: The largest image file that the SavedModel decodes.
            Defaults to 89,478,485.
        max_drop: The largest drop of R@1 or MAP@R that is allowed; an
            artefact that drops more is kept under `.rejected`. Defaults to
            `None`: any is allowed.
        output: Folder of the artefacts. Defaults to `None`, `RUN/export`.
        data_dir: Where the data are. Defaults to `None`, where they were.
        force: Whether to replace a folder that is not an export. Defaults to
            `False`.

    Returns:
        One row per artefact: sizes, cosines, retrieval and times beside the
        embedder's own.

    Raises:
        UsageError: There is no finished run, or the arguments do not go
            together.
        RunError: The run's files do not belong together or change meanwhile,
            a format cannot express the model, or an artefact was rejected.

    Example:

    ```python
    export_run("runs/digits", ["litert"], quantize=["int8"], max_drop=0.01)
    ```
    """
    if gallery is not None and not with_index:
        raise UsageError(
            "`--gallery` is what the index holds. Received: "
            f"{str(gallery)!r} without an index. Pass `--with-index` as well."
        )
    check_index(index, max_k)
    trained = TrainedRun(run, data_dir)
    folder, config = trained.folder, trained.config
    check = unchanged_files(folder)
    embedder = trained.embedder
    check_embedder(embedder, config, trained.metrics)
    data = load_run_data(config)
    references = None
    if with_index:
        references = References(
            read_references(trained, gallery, data_dir), index, max_k
        )
    return export_compared(
        embedder,
        data.test,
        config,
        trained.metrics,
        formats,
        Path(output) if output else folder.export,
        force,
        train=data.train,
        quantize=quantize,
        dynamic_batch=dynamic_batch,
        with_gallery=with_gallery,
        references=references,
        max_pixels=max_pixels,
        max_drop=max_drop,
        compared_images=2 * COMPARED_IMAGES,
        check=check,
    )


def export_compared(
    embedder: keras.Model,
    test: Manifest,
    config: RunConfig,
    metrics: Mapping[str, Any],
    formats: Sequence[str],
    output: Path,
    force: bool = False,
    *,
    train: Manifest | None = None,
    quantize: Sequence[str] = ("none",),
    dynamic_batch: bool = False,
    with_gallery: bool = False,
    references: References | None = None,
    max_pixels: int = MAX_PIXELS,
    max_drop: float | None = None,
    compared_images: int = COMPARED_IMAGES,
    check: Callable[[], None] | None = None,
) -> list[dict[str, Any]]:
    """Exports an embedder and logs how each artefact compares with it.

    Args:
        embedder: The trained embedder.
        test: Test images; the first classes of about `compared_images` images
            are compared.
        config: The settled configuration.
        metrics: The run's results, for the manifests of the artefacts.
        formats: Any of `saved_model`, `litert` and `onnx`.
        output: Folder of the artefacts.
        force: Whether to replace folders that are not exports.
        train: Training images, to calibrate int8. Defaults to `None`.
        quantize: See `export_run`.
        dynamic_batch: See `export_run`.
        with_gallery: See `export_run`.
        references: `References` for the SavedModel. Defaults to `None`.
        max_pixels: See `export_run`.
        max_drop: See `export_run`.
        compared_images: About how many images to compare. Defaults to `500`.
        check: Called before anything is put in place. Defaults to `None`.

    Returns:
        One row per artefact, the embedder's own first.

    Raises:
        UsageError: The arguments do not go together.
        RunError: A format cannot express the model, or an artefact was
            rejected.
    """
    compared = _first_classes(test, compared_images)
    facts = {
        key: metrics[key]
        for key in ("dataset", "recipe", "backbone", "seed", "after")
    }
    calibration = None
    if train is not None:
        facts["labels"] = list(train.class_names)
        calibration = _calibration(train, config)
    rows = export_embedder(
        embedder,
        formats,
        output,
        np.concatenate(list(_images(compared, config))),
        compared.labels,
        quantize=quantize,
        dynamic_batch=dynamic_batch,
        calibration=calibration,
        gallery=_gallery(test, config) if with_gallery else None,
        references=references,
        max_pixels=max_pixels,
        max_drop=max_drop,
        resize=config.augmentation.resize,
        squash=config.augmentation.squash,
        metadata=facts,
        force=force,
        check=check,
    )
    cells = [list(rows[0]), *([_cell(v) for v in row.values()] for row in rows)]
    logger.info(
        "Exported to %s, compared on %d test images:\n%s",
        output,
        len(compared),
        format_table(cells),
    )
    return rows


def exporter(
    formats: Sequence[str] = ("saved_model", "litert"),
) -> Callable[..., None]:
    """Returns what exports a run at the end of its training.

    Args:
        formats: What to export. Defaults to `("saved_model", "litert")`.

    Returns:
        Function for the argument `export` of `keras_dml.run.fit.fit`.
    """

    def export(
        embedder: keras.Model,
        data: RunData,
        config: RunConfig,
        metrics: Mapping[str, Any],
        folder: RunFolder,
    ) -> None:
        export_compared(
            embedder, data.test, config, metrics, formats, folder.export
        )

    return export


def check_embedder(
    embedder: keras.Model, config: RunConfig, metrics: Mapping[str, Any]
) -> None:
    """Refuses an embedder that is not the one the run has made.

    Args:
        embedder: What `embedder.keras` holds.
        config: The run's configuration.
        metrics: The run's results; the hash of the weights is compared where
            they have one.

    Raises:
        RunError: Shapes or weights differ.
    """
    expected = (tuple(config.data.image_shape), config.model.dim)
    found = (tuple(embedder.input_shape[1:]), embedder.output_shape[-1])
    if expected != found:
        raise RunError(
            "`embedder.keras` is not of this run: it embeds images of shape "
            f"{found[0]} in {found[1]} dimensions; the run's `config.yaml` "
            f"says {expected[0]} and {expected[1]}. Restore the file, or "
            "train the run again."
        )
    recorded = metrics.get("weights_hash")
    if recorded is not None and recorded != weights_hash(embedder):
        raise RunError(
            "`embedder.keras` has other weights than those that "
            "`metrics.json` was measured with. Restore the file, or train the "
            "run again."
        )


def unchanged_files(folder: RunFolder) -> Callable[[], None]:
    """Notes a run's files now; the function returned refuses if they differ.

    Args:
        folder: The run.

    Returns:
        Function that raises a `RunError` when a file has changed.
    """
    files = (folder.record, folder.metrics, folder.embedder)
    before = [_digest(file) for file in files]

    def check():
        changed = [
            file.name
            for file, digest in zip(files, before, strict=True)
            if _digest(file) != digest
        ]
        if changed:
            raise RunError(
                f"{', '.join(changed)} changed in {folder.path} while it was "
                "exported. Nothing was written. Export again when nothing "
                "else writes to the run."
            )

    return check


def _digest(file: Path) -> str | None:
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def _images(manifest: Manifest, config: RunConfig) -> Iterator[np.ndarray]:
    for inputs, _ in evaluation_batches(manifest, config):
        yield np.asarray(inputs["image"])


def _calibration(train: Manifest, config: RunConfig) -> Iterator[np.ndarray]:
    """Some training images, in uint8 as a client gives them."""
    generator = np.random.default_rng(config.seed)
    rows = generator.permutation(len(train))[:CALIBRATION_IMAGES]
    for batch in _images(train.select(rows), config):
        yield from np.rint(batch).astype("uint8")


class _ReferenceBatches:
    """Batches of images that can be gone through again."""

    def __init__(self, manifest: Manifest, config: RunConfig) -> None:
        self._manifest = manifest
        self._config = config

    def __iter__(self) -> Iterator[np.ndarray]:
        return _images(self._manifest, self._config)


def _gallery(test: Manifest, config: RunConfig) -> Gallery:
    """The test images that queries are answered with."""
    references = test.select(test.role != "query")
    if not len(references):
        raise UsageError("The test set has no references for a gallery.")
    return Gallery(
        _ReferenceBatches(references, config),
        labels=[references.class_names[row] for row in references.labels],
        ids=references.ids.tolist(),
    )


def _first_classes(manifest: Manifest, count: int) -> Manifest:
    """Whole classes, so that images keep their positives."""
    counts = np.cumsum(np.bincount(manifest.labels))
    last = min(np.searchsorted(counts, count), len(counts) - 1)
    return manifest.select(manifest.labels <= last)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def read_references(
    run: TrainedRun,
    gallery: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> EmbeddingSet:
    """Embeddings of a gallery by a run's weights, and by no others.

    Args:
        run: `TrainedRun`.
        gallery: A source, all images of which are taken; or embeddings: an
            `.npz` or Parquet file, or a folder that `keras-dml embed` wrote.
            Defaults to `None`, the run's test references.
        data_dir: Where a source's files are. Defaults to `None`.

    Returns:
        `EmbeddingSet` of the references alone.

    Raises:
        UsageError: The gallery cannot be read, or other weights made it.
    """
    if gallery is None:
        part = run.part("test")
    elif _holds_embeddings(Path(gallery)):
        return _read_embeddings(gallery, run.weights_hash)
    else:
        part = run.part("all", os.fspath(gallery), data_dir)
    assert part is not None
    return part.embeddings.select(part.embeddings.references)


def _holds_embeddings(path: Path) -> bool:
    return path.suffix in (".npz", ".parquet") or ShardFolder(path).exists


def _read_embeddings(path: str | Path, weights_hash: str) -> EmbeddingSet:
    embeddings = load_embeddings(path)
    if embeddings.weights_hash != weights_hash:
        received = embeddings.weights_hash or "no hash"
        raise UsageError(
            f"The embeddings of `--gallery {path}` must be made by this run's "
            f"weights, with the hash {weights_hash}. Received: {received}. "
            "Embed the images again with this run."
        )
    return embeddings.select(embeddings.references)
