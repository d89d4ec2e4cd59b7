"""Embeds image files, their bytes, or arrays of pixels in memory."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_dml.data import decoding, verification
from keras_dml.data.image_file import reason_unopened
from keras_dml.data.image_fit import ImageFit, decode_readable
from keras_dml.errors import UsageError, reason_of
from keras_dml.export.artifact import ExportFolder, read_manifest
from keras_dml.export.search_ops import import_scann_ops
from keras_dml.models import forward_function, load_embedder
from keras_dml.run.batches import image_fit
from keras_dml.run.embedder_check import check_embedder
from keras_dml.run.folder import RunFolder

BATCH_SIZE = 64


class ImageEmbedder:
    """Maps images to embeddings.

    It decodes, resizes and crops images as the evaluation of the run does.

    Args:
        model: A run folder, an `embedder.keras`, or an exported SavedModel.
            If the `config.yaml` of its run is not next to an
            `embedder.keras`, the shorter side is resized to the model's input
            and the center is cropped.
        max_pixels: Integer; larger images are not decoded. Defaults to
            89,478,485.

    Raises:
        UsageError: If `model` is none of these, or ScaNN is missing and the
            SavedModel holds an index of it.
        RunError: If the `embedder.keras` of a run is not the one that its
            `config.yaml` and `metrics.json` are of.

    Example:

    ```python
    embedder = ImageEmbedder("runs/shoes")
    rows = embedder(["photo.jpg", Path("other.png").read_bytes()])
    print(rows.shape)
    ```
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        max_pixels: int = decoding.MAX_PIXELS,
    ) -> None:
        self.max_pixels = max_pixels
        path = Path(model)
        folder = RunFolder(path)
        if path.name == folder.embedder.name:
            folder = RunFolder(path.parent)
        if ExportFolder(path).exists and (path / "saved_model.pb").is_file():
            self._fit = self._load_saved_model(path)
        elif folder.exists:
            embedder = load_embedder(folder.embedder)
            config = folder.load_config()
            metrics = folder.read_metrics() if folder.finished else {}
            check_embedder(embedder, config, metrics)
            self._model, self._forward = embedder, forward_function(embedder)
            self._fit = image_fit(config)
        elif path.suffix == ".keras":
            embedder = load_embedder(path)
            self._model, self._forward = embedder, forward_function(embedder)
            self._fit = ImageFit(
                embedder.input_shape[1], embedder.input_shape[3]
            )
        else:
            raise UsageError(
                f"{path} must be a run folder, an `embedder.keras` or an "
                "exported SavedModel. Received: none of them. Name the "
                "`output` of `fit`, or a folder saved_model/ of `export`."
            )
        self._prepare = _make_prepare(self._fit, max_pixels)

    def __call__(self, images: Any) -> np.ndarray:
        """Embeds images, in their order.

        Args:
            images: Sequence of paths, of bytes of image files, or of uint8
                arrays `(height, width, 1 or 3)`; or a single image.

        Returns:
            float32 array `(n, dim)`. The rows have length 1, unless the run
            was trained with `evaluation.normalize: false`.

        Raises:
            UsageError: If an image cannot be read; names the image.
        """
        if isinstance(images, str | bytes | os.PathLike) or (
            isinstance(images, np.ndarray) and images.ndim == 3
        ):
            images = [images]
        rows: list[np.ndarray] = []
        for start in range(0, len(images), BATCH_SIZE):
            part = images[start : start + BATCH_SIZE]
            for number, row in enumerate(self._embed(part), start):
                if isinstance(row, str):
                    raise UsageError(
                        f"`images[{number}]` cannot be read as an image: "
                        f"{row}. Received: {_shown(images[number])}"
                    )
                rows.append(row)
        return np.stack(rows) if rows else self._none()

    def embed_bytes(self, contents: Sequence[bytes]) -> list[np.ndarray | str]:
        """Returns the embedding of each file, or why it cannot be decoded.

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
            embeddings = np.asarray(self._forward(images))
            found = dict(zip(rows.numpy().tolist(), embeddings, strict=True))
        return [
            found[row]
            if row in found
            else verification.why_refused(content, self.max_pixels)
            or "it cannot be resized for the network"
            for row, content in enumerate(contents)
        ]

    def _embed(self, images: Sequence[Any]) -> list[np.ndarray | str]:
        """Returns the embeddings of one batch, or reasons."""
        if not all(isinstance(image, np.ndarray) for image in images):
            return self.embed_bytes([_content(image) for image in images])
        for image in images:
            colors = image.shape[2:] in ((1,), (3,))
            if image.dtype != np.uint8 or not (colors and image.size):
                raise UsageError(
                    "`images` must be uint8 arrays of shape (height, width, 1 "
                    f"or 3), of a pixel or more. Received: {_shown(image)}"
                )
        fitted = [self._fit.fit(tf.constant(image)) for image in images]
        return list(np.asarray(self._forward(tf.stack(fitted))))

    def _none(self) -> np.ndarray:
        row = self._forward(tf.zeros((1, *self._fit.shape)))
        return np.asarray(row)[:0]

    def _load_saved_model(self, path: Path) -> ImageFit:
        manifest = read_manifest(path)
        image = manifest["image"]
        if manifest.get("index", {}).get("kind") == "scann":
            import_scann_ops()
        # Keeps the model, because its functions stop working without it.
        try:
            self._model = tf.saved_model.load(str(path))
        except (tf.errors.OpError, OSError, ValueError) as error:
            raise UsageError(
                "`model` must be a whole SavedModel. Received: "
                f"{path} ({reason_of(error)}). Export it again."
            ) from error
        self._forward = lambda images: self._model.serve(images)["embedding"]
        return ImageFit(
            image["height"], image["channels"], image["resize"], image["squash"]
        )


def _content(image: Any) -> bytes:
    """Returns the bytes of an image file."""
    if isinstance(image, bytes):
        return image
    try:
        problem = reason_unopened(image)
        if not problem:
            return Path(image).read_bytes()
    except (OSError, TypeError) as error:
        problem = str(error)
    raise UsageError(
        "`images` must be paths or bytes of image files, or only arrays. "
        f"Received: {_shown(image)} ({problem})"
    )


def _shown(image: Any) -> str:
    if isinstance(image, np.ndarray):
        return f"an array of shape {image.shape} and dtype {image.dtype}"
    return f"{len(image)} bytes" if isinstance(image, bytes) else repr(image)


def _make_prepare(fit: ImageFit, max_pixels: int) -> Any:
    """Returns a function that decodes bytes to images and their rows."""

    # This function is traced once. Without it, the dataset inside would be
    # built again for each batch.
    @tf.function(
        input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False
    )
    def prepare(contents):
        rows, images = decode_readable(
            contents, lambda one: fit.decode(one, max_pixels), fit.shape
        )
        return rows[:-1], images[:-1]

    return prepare
