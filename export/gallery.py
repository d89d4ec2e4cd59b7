"""A small gallery beside an artefact, to search on the device itself."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.export.artefact import read_manifest, write_json
from keras_dml.export.runners import open_artefact

ROWS_FILE = "gallery.bin"
NOTES_FILE = "gallery.json"
GALLERY_FILES = (ROWS_FILE, NOTES_FILE)


@dataclasses.dataclass(frozen=True, eq=False)
class Gallery:
    """The images that a device searches.

    Args:
        batches: Arrays `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation; something that can be gone through
            once per artefact, such as a list.
        labels: What to tell the user, one text per image.
        ids: Which image it was, one text per image.
    """

    batches: Iterable[np.ndarray]
    labels: Sequence[str]
    ids: Sequence[str]


def write_gallery(folder: str | Path, gallery: Gallery) -> None:
    """Embeds a gallery with the artefact itself, as int8 rows beside it.

    The artefact embeds its own gallery, so that queries on the device meet
    rows of the same quantization. `gallery.bin` holds the rows, one after the
    other, `gallery.json` their number, "dim", "scale", "labels" and "ids".
    The cosine to a query `q` of length 1 is `scale * (rows @ q)`.

    Args:
        folder: An artefact of unit embeddings; the files go into it.
        gallery: The images.

    Raises:
        UsageError: The embeddings are not of length 1, the gallery is empty,
            or it has not one label and one id per image.

    Example:

    ```python
    folder = export_litert(embedder, "export/litert")
    write_gallery(folder, Gallery([images], labels=names, ids=paths))
    ```
    """
    folder = Path(folder)
    if not read_manifest(folder)["embedding"]["unit_length"]:
        raise UsageError(
            "A gallery on the device needs embeddings of length 1. Train with "
            "`evaluation.normalize: true`."
        )
    runner = open_artefact(folder)
    parts = [
        runner.embed(runner.prepare(batch))
        for batch in gallery.batches
        if len(batch)
    ]
    if not parts:
        raise UsageError("A gallery must hold at least one image.")
    embeddings = np.concatenate(parts)
    for name, texts in (("labels", gallery.labels), ("ids", gallery.ids)):
        if len(texts) != len(embeddings):
            raise UsageError(
                f"`{name}` must have one text per image. Received: "
                f"{len(texts)} for {len(embeddings)} images."
            )
    scale = float(np.abs(embeddings).max()) / 127.0
    rows = np.rint(embeddings / scale).astype("int8")
    (folder / ROWS_FILE).write_bytes(rows.tobytes())
    write_json(
        folder / NOTES_FILE,
        {
            "rows": len(rows),
            "dim": rows.shape[1],
            "scale": scale,
            "labels": [str(label) for label in gallery.labels],
            "ids": [str(one) for one in gallery.ids],
        },
    )
