"""All formats at once, each checked against the embedder."""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.errors import RunError, UsageError
from keras_dml.export.artefact import (
    REJECTED,
    check_output,
    put_in_place,
    remove_export,
    write_json,
)
from keras_dml.export.gallery import Gallery, write_gallery
from keras_dml.export.litert import check_quantization, export_litert
from keras_dml.export.onnx import check_onnx, export_onnx
from keras_dml.export.parity import REPORT, parity, retrieval_drops
from keras_dml.export.saved_model import export_saved_model
from keras_dml.naming import nearest

FORMATS: dict[str, Callable[..., Path]] = {
    "saved_model": export_saved_model,
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
        max_drop: The largest drop of R@1 or MAP@R that is allowed, such as
            `0.01`. An artefact that drops more goes to
            `output/<name>.rejected`. Defaults to `None`: any is allowed.
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
        The rows of `parity`: the embedder's own, then one per artefact.

    Raises:
        UsageError: A format or quantization is unknown, a package that it
            needs is missing, `max_drop` is given without labels, or `output`
            holds other things.
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
    _check_arguments(formats, quantize, labels, max_drop)
    jobs = dict(_jobs(formats, quantize, dynamic_batch, calibration))
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
            for name, export in jobs.items()
        }
        if gallery is not None:
            for name in filter(_is_litert, folders):
                write_gallery(folders[name], gallery)
        rows = parity(embedder, folders, images, labels)
        for row in rows[1:]:
            write_json(folders[row["artefact"]] / REPORT, [rows[0], row])
        drops = {}
        if max_drop is not None:
            drops = retrieval_drops(rows, max_drop)
        if check is not None:
            check()
        for name, folder in folders.items():
            rejected = output / f"{name}{REJECTED}"
            if name in drops:
                put_in_place(folder, rejected, force)
            else:
                put_in_place(folder, output / name, force)
                remove_export(rejected)
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


def _check_arguments(formats, quantize, labels, max_drop):
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


def _jobs(formats, quantize, dynamic_batch, calibration):
    """Pairs of an artefact's name and the function that makes it."""
    for name in formats:
        if name != "litert":
            yield name, FORMATS[name]
            continue
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
