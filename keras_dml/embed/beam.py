"""Embeds images on many machines, as a transform of Apache Beam.

Needs `pip install 'keras-dml[beam]'`. Only `beam_job` imports this module.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from apache_beam.ml.inference.base import (
    KeyedModelHandler,
    ModelHandler,
    RunInference,
)

from keras_dml.data.image_file import MAX_PIXELS

BAD = "bad"
EMBEDDED = "embedded"


class EmbedderHandler(ModelHandler):
    """Loads an embedder once per process and embeds bytes of image files.

    Pass it to `RunInference`. It returns a float32 array `(dim,)` for each
    image, or a string with the reason why the image cannot be decoded.

    Args:
        model: A run folder, its `embedder.keras`, or an exported SavedModel:
            a path, or an address that Beam can read, such as gs://.
        max_batch_size: Integer, the largest number of images to embed at
            once. Defaults to `64`.
        max_pixels: Integer; larger images are not decoded. Defaults to
            89,478,485.

    Example:

    ```python
    results = images | RunInference(
        KeyedModelHandler(EmbedderHandler("runs/shoes"))
    )
    ```
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        max_batch_size: int = 64,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self._model = os.fspath(model)
        self._max_batch_size = max_batch_size
        self._max_pixels = max_pixels
        super().__init__()

    def load_model(self) -> Any:
        """Returns an `ImageEmbedder`; called on each worker."""
        # Imports TensorFlow, which building the pipeline does not need.
        from keras_dml.embed.embedder import ImageEmbedder

        if "://" not in self._model:
            return ImageEmbedder(self._model, self._max_pixels)
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_folder(self._model.removesuffix("/"), folder)
            return ImageEmbedder(copy, self._max_pixels)

    def run_inference(
        self,
        batch: Sequence[bytes],
        model: Any,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[np.ndarray | str]:
        """Embeds a batch; called on each worker."""
        return model.embed_bytes(batch)

    def batch_elements_kwargs(self) -> dict[str, int]:
        """Returns the largest number of images in a batch of Beam."""
        return {"max_batch_size": self._max_batch_size}

    def get_num_bytes(self, batch: Sequence[bytes]) -> int:
        """Returns the size of a batch, for Beam's counters."""
        return sum(map(len, batch))

    def get_metrics_namespace(self) -> str:
        """Returns the name of Beam's counters."""
        return "keras_dml"


class EmbedImages(beam.PTransform):
    """Maps pairs of an id and the bytes of an image file to embeddings.

    Args:
        model: As for `EmbedderHandler`.
        max_batch_size: Integer, the largest number of images to embed at
            once. Defaults to `64`.
        max_pixels: Integer; larger images are bad ones. Defaults to
            89,478,485.

    Returns:
        Two collections: `embedded`, pairs of an id and a float32 array
        `(dim,)`, and `bad`, pairs of an id and the reason.

    Example:

    ```python
    with beam.Pipeline() as pipeline:
        images = pipeline | ReadImages("photos/**.jpg")
        result = images | EmbedImages("runs/shoes")
        result.embedded | beam.Map(print)
        result.bad | "Bad" >> beam.Map(print)
    ```
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        max_batch_size: int = 64,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        super().__init__()
        self._handler = EmbedderHandler(model, max_batch_size, max_pixels)

    def expand(self, images: beam.PCollection) -> Any:
        """Builds the steps."""
        results = images | "Embed" >> RunInference(
            KeyedModelHandler(self._handler)
        )
        return results | "Split" >> beam.FlatMap(_split).with_outputs(
            BAD, main=EMBEDDED
        )


class ReadImages(beam.PTransform):
    """Reads files as pairs of their name and their bytes.

    Args:
        pattern: A path or address with wildcards, such as
            `gs://shop/photos/**.jpg`; `**` also matches sub-folders.
        root: Prefix to remove from the names, such as `gs://shop/photos/`.
            Defaults to `""`, nothing.
    """

    def __init__(self, pattern: str, root: str = "") -> None:
        super().__init__()
        self._pattern = pattern
        self._root = root

    def expand(self, start: Any) -> beam.PCollection:
        """Builds the steps, of which the first fails if no file matches."""
        return (
            start
            | "Match"
            >> fileio.MatchFiles(
                self._pattern, fileio.EmptyMatchTreatment.DISALLOW
            )
            | "Spread" >> beam.Reshuffle()
            | "Open" >> fileio.ReadMatches()
            | "Read" >> beam.Map(_read, self._root)
        )


def copy_folder(address: str, target: str | os.PathLike[str]) -> Path:
    """Copies a folder that Beam can read to this machine.

    Args:
        address: The folder, or an `embedder.keras` in a run folder.
        target: A local folder.

    Raises:
        FileNotFoundError: If the folder holds no file.
    """
    if address.endswith(".keras"):
        address = address.rpartition("/")[0]
    (match,) = FileSystems.match([f"{address}/**"])
    if not match.metadata_list:
        raise FileNotFoundError(f"There is no file in {address}.")
    for found in match.metadata_list:
        name = found.path.removeprefix(address).lstrip("/")
        copy = Path(target, name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with FileSystems.open(found.path) as source, copy.open("wb") as file:
            shutil.copyfileobj(source, file, 2**20)
    return Path(target)


def _read(file, root):
    # Closes the file; Beam's `read` leaves that to the garbage collector.
    with file.open() as content:
        return file.metadata.path.removeprefix(root), content.read()


def _split(result):
    name, value = result
    if isinstance(value, str):
        yield beam.pvalue.TaggedOutput(BAD, (name, value))
    else:
        yield name, value
