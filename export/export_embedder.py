"""All formats at once, each checked against the embedder."""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.data.decoding import MAX_PIXELS
from keras_dml.errors import RunError, UsageError
from keras_dml.export.artefact import (
    REJECTED,
    check_output,
    put_in_place,
    remove_export,
    write_json,
)
from keras_dml.export.gallery import Gallery, write_gallery
from keras_dml.export.index_parity import index_drop, index_parity
from keras_dml.export.litert import check_quantization, export_litert
from keras_dml.export.onnx import check_onnx, export_onnx
from keras_dml.export.parity import REPORT, parity, retrieval_drops
from keras_dml.export.references import References
from keras_dml.export.saved_model import export_saved_model
from keras_dml.naming import nearest

SAVED_MODEL = "saved_model"
FORMATS: dict[str, Callable[..., Path]] = {
    SAVED_MODEL: export_saved_model,
    "litert": export_litert,
    "onnx": export_onnx,
}


def export_embedder(
    embedder: keras.Model,
    formats: Sequence[str],
    output: str | Path,
    images: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    quantize: Sequence[str] = ("none",),
    dynamic_batch: bool = False,
    calibration: Iterable[np.ndarray] | None = None,
    gallery: Gallery | None = None,
    references: References | None = None,
    max_pixels: int = MAX_PIXELS,
    max_drop: float | None = None,
    resize: int | None = None,
    squash: bool = False,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
    check: Callable[[], None] | None = None,
) -> list[dict[str, Any]]:
    """Exports an embedder and compares each artefact with it.

    Every artefact is a folder `output/<name>`, see `artefact_name`; its
    comparison is in it, in `parity.json`. Artefacts come into their places
    when all of them are whole and compared; earlier ones are replaced then.

    Args:
        embedder: Model of square images with values in 0..255.
        formats: Any of `"saved_model"`, `"litert"` and `"onnx"`.
        output: Folder of the artefacts.
        images: Array `(n, height, width, channels)` of real images to compare
            on, with values in 0..255, resized as in the evaluation.
        labels: Integer array `(n,)`, to compare retrieval too. Defaults to
            `None`.
        quantize: Quantizations of LiteRT; one artefact each, see
            `export_litert`. Defaults to `("none",)`.
        dynamic_batch: Whether LiteRT takes any number of images at once.
            Defaults to `False`.
        calibration: uint8 images for the quantization `"int8"`. Defaults to
            `None`.
        gallery: Images whose embeddings go beside LiteRT, to search on the
            device. Defaults to `None`.
        references: `References` that the SavedModel searches by itself.
            Defaults to `None`.
        max_pixels: The largest image file that the SavedModel decodes.
            Defaults to 89,478,485.
        max_drop: The largest drop of R@1 or MAP@R that is allowed, such as
            `0.01`; of R@1 through an index, against exact search, too. An
            artefact that drops more goes to `output/<name>.rejected`.
            Defaults to `None`: any is allowed.
        resize: Shorter side in pixels to which the evaluation resizes before
            it crops. Defaults to the size of the embedder's images.
        squash: Whether the evaluation resizes both sides to it. Defaults to
            `False`.
        metadata: JSON-able facts for the manifests, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to write beside other things in `output`, and to
            replace a folder `output/<name>` that is not an export. Defaults
            to `False`.
        check: Called before anything is put in place; an error that it raises
            leaves all as it was. Defaults to `None`.

    Returns:
        The rows of `parity`: the embedder's own, then one per artefact. With
        references also "ann_recall@10" (or of fewer) and "index_recall@1",
        see `index_parity`; `None` where there is no index.

    Raises:
        UsageError: A format or quantization is unknown, a package that it
            needs is missing, `max_drop` is given without labels, references
            without the format that takes them, or `output` holds other
            things.
        RunError: A format cannot express the model, or an artefact was
            rejected.

    Example:

    ```python
    rows = export_embedder(
        embedder, ["saved_model", "litert"], "export", images, labels
    )
    ```
    """
    output = Path(output)
    _check_arguments(formats, quantize, labels, max_drop, references)
    serving = {"references": references, "max_pixels": max_pixels}
    jobs = _jobs(formats, quantize, dynamic_batch, calibration, serving)
    if not force:
        check_output(output)
    with _staging(output) as staging:
        folders = {
            name: export(
                embedder,
                staging / name,
                resize=resize,
                squash=squash,
                metadata=metadata,
            )
            for name, export in jobs
        }
        if gallery is not None:
            for name in filter(_is_litert, folders):
                write_gallery(folders[name], gallery)
        rows, drops = _compare(
            embedder, folders, images, labels, references, max_drop
        )
        if check is not None:
            check()
        _put_in_place(folders, output, drops, force)
    if drops:
        raise RunError(
            f"Retrieval drops by more than `max_drop` {max_drop:g}: "
            + " ".join(
                f"{name} has {drop}; it is kept as {output / name}{REJECTED}."
                for name, drop in drops.items()
            )
        )
    return rows


def artefact_name(
    name: str, quantize: str = "none", dynamic_batch: bool = False
) -> str:
    """Name of an artefact's folder.

    Args:
        name: The format.
        quantize: The quantization. Defaults to `"none"`.
        dynamic_batch: Whether it takes any number of images, where the
            format has a choice. Defaults to `False`.

    Example:

    >>> artefact_name("litert", "int8")
    'litert-int8'
    """
    parts = [name]
    if quantize != "none":
        parts.append(quantize)
    if dynamic_batch:
        parts.append("dynamic_batch")
    return "-".join(parts)


def _check_arguments(formats, quantize, labels, max_drop, references):
    for name in formats:
        if name not in FORMATS:
            raise UsageError(
                f"`--format` must be one of {', '.join(FORMATS)}. "
                f"Received: {name!r}. Nearest: {nearest(name, FORMATS)}."
            )
    for one in quantize:
        check_quantization(one)
        if one != "none" and "litert" not in formats:
            raise UsageError(
                f"`quantize={one}` is for LiteRT. Received: formats "
                f"{', '.join(formats)}. Add the format `litert`."
            )
    if references is not None and SAVED_MODEL not in formats:
        raise UsageError(
            "`--with-index` is for a SavedModel. Received: formats "
            f"{', '.join(formats)}. Add the format `{SAVED_MODEL}`."
        )
    if "onnx" in formats:
        check_onnx()
    if max_drop is not None:
        if max_drop < 0:
            raise UsageError(
                f"`max_drop` must be at least 0. Received: {max_drop}"
            )
        if labels is None:
            raise UsageError(
                "`max_drop` compares retrieval and needs `labels`. "
                "Received: labels=None"
            )


def _jobs(formats, quantize, dynamic_batch, calibration, serving):
    """Pairs of an artefact's name and the function that makes it."""
    for name in formats:
        if name == SAVED_MODEL:
            yield name, functools.partial(FORMATS[name], **serving)
        elif name != "litert":
            yield name, FORMATS[name]
        else:
            for one in quantize:
                yield (
                    artefact_name(name, one, dynamic_batch),
                    functools.partial(
                        FORMATS[name],
                        quantize=one,
                        dynamic_batch=dynamic_batch,
                        calibration=calibration if one == "int8" else None,
                    ),
                )


def _is_litert(name):
    return name.partition("-")[0] == "litert"


def _compare(embedder, folders, images, labels, references, max_drop):
    """Rows of all artefacts, written into them, and what drops too much."""
    rows = parity(embedder, folders, images, labels)
    drops = {} if max_drop is None else retrieval_drops(rows, max_drop)
    reports = {row["artefact"]: [rows[0], row] for row in rows[1:]}
    if references is not None:
        index = index_parity(folders[SAVED_MODEL], references)
        found = f"ann_recall@{index['k']}"
        for row in rows:
            served = row["artefact"] == SAVED_MODEL
            row[found] = index[found] if served else None
            row["index_recall@1"] = index["recall@1"] if served else None
        reports[SAVED_MODEL].append({"artefact": "index", **index})
        drop = None if max_drop is None else index_drop(index, max_drop)
        if drop:
            drops[SAVED_MODEL] = "; ".join(
                filter(None, (drops.get(SAVED_MODEL), drop))
            )
    for name, report in reports.items():
        write_json(folders[name] / REPORT, report)
    return rows, drops


def _put_in_place(folders, output, drops, force):
    for name, folder in folders.items():
        rejected = output / f"{name}{REJECTED}"
        if name in drops:
            put_in_place(folder, rejected, force)
        else:
            put_in_place(folder, output / name, force)
            remove_export(rejected)


@contextlib.contextmanager
def _staging(output: Path) -> Iterator[Path]:
    """A folder in `output` for what is not yet compared; gone at the end."""
    folder = output / ".export.candidate"
    made = [one for one in (output, *output.parents) if not one.exists()]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        for one in made:
            if any(one.iterdir()):
                break
            one.rmdir()
