"""Embeds image files that are in memory, as `keras-dml embed` does."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_dml.config import load_run_config
from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit, decode_readable
from keras_dml.embed.stream import make_forward
from keras_dml.errors import UsageError
from keras_dml.export.artefact import is_export, read_manifest
from keras_dml.models import load_embedder
from keras_dml.run.data import image_fit


class BytesEmbedder:
    """A function of the bytes of image files to their embeddings.

    It decodes, resizes and crops as the evaluation of the run does, whatever
    the model is loaded from.

    Args:
        path: A run folder, its `embedder.keras`, or an exported SavedModel.
        max_pixels: Integer, larger images are refused. Defaults to
            89,478,485.

    Raises:
        UsageError: If the path is none of these.

    Example:

    ```python
    embedder = BytesEmbedder("runs/shoes")
    (embedding,) = embedder([Path("photo.jpg").read_bytes()])
    ```
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_pixels: int = decoding.MAX_PIXELS,
    ) -> None:
        self.max_pixels = max_pixels
        path = Path(path)
        if path.suffix == ".keras":
            path = path.parent
        if is_export(path) and (path / "saved_model.pb").is_file():
            fit = self._load_saved_model(path)
        elif (path / "config.yaml").is_file():
            fit = self._load_run(path)
        else:
            raise UsageError(
                f"{path} must be a run folder or an exported SavedModel. "
                "Received: neither. Name the `--output` of `keras-dml fit`, "
                "or a folder saved_model/ of `keras-dml export`."
            )
        self._prepare = _make_prepare(fit, max_pixels)

    def __call__(self, contents: Sequence[bytes]) -> list[np.ndarray | str]:
        """For each file its embedding, or words on why it has none.

        Args:
            contents: The bytes of JPEG, PNG, GIF, BMP, WebP or TIFF files.

        Returns:
            List of float32 arrays `(dim,)` and strings.
        """
        if not contents:
            return []
        rows, images = self._prepare(tf.constant(list(contents), tf.string))
        found: dict[int, np.ndarray] = {}
        if len(rows):
            embeddings = self._forward(images).numpy()
            found = dict(zip(rows.numpy().tolist(), embeddings, strict=True))
        return [
            found[row]
            if row in found
            else decoding.why_refused(content, self.max_pixels)
            for row, content in enumerate(contents)
        ]

    def _load_run(self, path):
        config = load_run_config(path / "config.yaml")
        self._forward = make_forward(load_embedder(path / "embedder.keras"))
        return image_fit(config)

    def _load_saved_model(self, path):
        image = read_manifest(path)["image"]
        # Kept, for its functions live no longer than it does.
        self._model = tf.saved_model.load(str(path))
        self._forward = lambda images: self._model.serve(images)["embedding"]
        return ImageFit(
            image["height"], image["channels"], image["resize"], image["squash"]
        )


def _make_prepare(fit, max_pixels):
    """A function of bytes to the rows and images that can be decoded."""

    # Traced once; a dataset made anew for each batch would be built each time.
    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def prepare(contents):
        rows, images = decode_readable(
            contents, lambda one: fit.decode(one, max_pixels), fit.shape
        )
        return rows[:-1], images[:-1]

    return prepare
