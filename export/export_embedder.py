"""All formats at once, each checked against the embedder."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.errors import UsageError
from keras_dml.export.artefact import check_output
from keras_dml.export.litert import export_litert
from keras_dml.export.parity import REPORT, parity
from keras_dml.export.saved_model import export_saved_model
from keras_dml.files import write_text
from keras_dml.naming import nearest

FORMATS: dict[str, Callable[..., Path]] = {
    "saved_model": export_saved_model,
    "litert": export_litert,
}


def export_embedder(
    embedder: keras.Model,
    formats: Sequence[str],
    output: str | Path,
    images: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    resize: int | None = None,
    squash: bool = False,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Exports an embedder and compares each artefact with it.

    Every artefact is a folder `output/<format>`; its comparison is beside it
    in `parity.json`. An earlier export is replaced when the new one is whole.

    Args:
        embedder: Model of square images with values in 0..255.
        formats: Any of `"saved_model"` and `"litert"`.
        output: Folder of the artefacts.
        images: Array `(n, height, width, channels)` of real images to compare
            on, with values in 0..255, resized as in the evaluation.
        labels: Integer array `(n,)`, to compare retrieval too. Defaults to
            `None`.
        resize: Shorter side in pixels to which the evaluation resizes before
            it crops. Defaults to the size of the embedder's images.
        squash: Whether the evaluation resizes both sides to it. Defaults to
            `False`.
        metadata: JSON-able facts for the manifests, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to write beside other things in `output`, and to
            replace a folder `output/<format>` that is not an export. Defaults
            to `False`.

    Returns:
        The rows of `parity`: the embedder's own, then one per format.

    Raises:
        UsageError: A format is unknown, or `output` holds other things.
        RunError: A format cannot express the model.

    Example:

    ```python
    rows = export_embedder(
        embedder, ["saved_model", "litert"], "export", images, labels
    )
    ```
    """
    output = Path(output)
    for name in formats:
        if name not in FORMATS:
            raise UsageError(
                f"`--format` must be one of {', '.join(FORMATS)}. "
                f"Received: {name!r}. Nearest: {nearest(name, FORMATS)}."
            )
    if not force:
        check_output(output)
    folders = {
        name: FORMATS[name](
            embedder,
            output / name,
            resize=resize,
            squash=squash,
            metadata=metadata,
            force=force,
        )
        for name in dict.fromkeys(formats)
    }
    rows = parity(embedder, folders, images, labels)
    for row in rows[1:]:
        report = json.dumps([rows[0], row], indent=2)
        write_text(output / row["artefact"] / REPORT, report + "\n")
    return rows
