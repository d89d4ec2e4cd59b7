"""Makes small pictures of images for a page."""

import base64
import io
import os

import numpy as np
import tensorflow as tf
from PIL import Image

from keras_dml.data import decoding, pipeline
from keras_dml.data.manifest import Manifest

SIDE = 96
JPEG_QUALITY = 80
# Smaller images are drawings or digits: JPEG would smear them.
SMALL_SIDE = 48


class Thumbnails:
    """Makes thumbnails of the images of a manifest on demand.

    Args:
        images: `Manifest`.

    Example:

    ```python
    thumbnails = Thumbnails(manifest)
    page = f'<img src="{thumbnails.uri(0)}" alt="the first image" />'
    ```
    """

    def __init__(self, images: Manifest) -> None:
        self.images = images
        self._uris: dict[int, str] = {}

    def pixels(self, row: int) -> np.ndarray:
        """Reads the whole image, uint8 `(height, width, 3)`."""
        if self.images.images is None:
            path = os.fsencode(self.images.paths[row])
            return decoding.traced_decode(tf.io.read_file(path)).numpy()
        image = tf.constant(self.images.images[row])
        return decoding.to_channels(image, 3).numpy()

    def uri(self, row: int) -> str:
        """Returns the image as a data URI, at most 96 pixels wide and high."""
        if row not in self._uris:
            self._uris[row] = _image_uri(self.pixels(row))
        return self._uris[row]

    def squares(self, rows: np.ndarray, side: int) -> np.ndarray:
        """Returns the centers of images, uint8 `(rows, side, side, 3)`."""
        batches = pipeline.evaluation_batches(
            self.images.select(rows),
            batch_size=128,
            image_size=side,
            channels=3,
        )
        pixels = np.concatenate(
            [inputs["image"].numpy() for inputs, _ in batches]
        )
        return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


def data_uri(content: bytes, kind: str) -> str:
    """Returns the content of a file as a data URI.

    Args:
        content: The bytes.
        kind: Their media type, such as `image/png`.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _image_uri(pixels: np.ndarray) -> str:
    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    if max(image.size) <= SMALL_SIDE:
        image.save(buffer, "PNG", optimize=True)
        return data_uri(buffer.getvalue(), "image/png")
    image.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return data_uri(buffer.getvalue(), "image/jpeg")
