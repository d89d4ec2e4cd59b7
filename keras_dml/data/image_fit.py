"""Turns an image into the input of a network.

Training may crop at random; everything else uses `ImageFit`: evaluation,
embedding, search, thumbnails, and the exported SavedModel.
"""

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from keras_dml.checks import require
from keras_dml.data import decoding, large_photos, resizing
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True)
class ImageFit:
    """Resizes images, crops their center and sets their channels.

    The shorter side becomes `resize`, with antialiasing; then a square of
    `size` is cropped at the center. An image that already has the right size
    is not resized.

    Args:
        size: Integer, the side of the square.
        channels: 3 for RGB or 1 for luma. Defaults to `3`.
        resize: Integer, the shorter side before the crop. Defaults to `size`.
        squash: Boolean, whether both sides become `resize`. Defaults to
            `False`.

    Raises:
        UsageError: If `channels` is neither 1 nor 3, or `resize` is smaller
            than `size`.

    Example:

    >>> ImageFit(size=2, channels=1).fit(tf.zeros((4, 6, 3), tf.uint8)).shape
    TensorShape([2, 2, 1])
    """

    size: int
    channels: int = 3
    resize: int | None = None
    squash: bool = False

    def __post_init__(self):
        require(self.channels in (1, 3), "channels", "1 or 3", self.channels)
        if self.size < 1 or (self.resize or self.size) < self.size:
            raise UsageError(
                "`resize` must be at least `image_size`, since a square of "
                f"that side is cropped. Received: resize={self.resize}, "
                f"image_size={self.size}"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the result."""
        return self.size, self.size, self.channels

    def decode(
        self, contents, max_pixels: int = decoding.MAX_PIXELS
    ) -> tf.Tensor:
        """Decodes an image file and fits it.

        Args:
            contents: Scalar string tensor, the bytes of the file.
            max_pixels: Integer. Larger images raise an error. Defaults to
                89,478,485.

        Returns:
            float32 tensor `(size, size, channels)` with values in 0..255.
        """
        pixels = decoding.traced_decode(contents, max_pixels=max_pixels)
        return self.fit(pixels)

    def fit(self, pixels, place=None) -> tf.Tensor:
        """Fits one image, or a batch of images of one shape.

        Args:
            pixels: Tensor `(..., height, width, 1 or 3)`.
            place: float32 tensor `(2,)` in [0, 1), the vertical and
                horizontal place of the crop. Defaults to the center.

        Returns:
            float32 tensor `(..., size, size, channels)`.
        """
        pixels = self._resized(pixels, place)
        shape = (*pixels.shape[:-3], self.size, self.size, pixels.shape[-1])
        pixels = tf.ensure_shape(pixels, shape)
        return decoding.to_channels(pixels, self.channels)

    def _resized(self, pixels, place):
        def resized():
            return resizing.resize_and_crop(
                pixels, self.size, self.resize, self.squash, place
            )

        def unchanged():
            return tf.cast(pixels, tf.float32)

        if self.resize not in (None, self.size):
            return resized()
        # Resizing to the same size would change no pixel, but take as long
        # as decoding.
        sides = pixels.shape[-3:-1]
        if sides.is_fully_defined():
            return unchanged() if set(sides) == {self.size} else resized()
        has_size = tf.reduce_all(tf.shape(pixels)[-3:-1] == self.size)
        return tf.cond(has_size, unchanged, resized)


@functools.cache
def file_reader(fit: ImageFit, again: bool = False) -> Callable:
    """Returns a function of a path that decodes a file and fits it.

    It is traced once, since each set of images that a run embeds needs it.

    Args:
        fit: `ImageFit`.
        again: Whether files will be read again, so that large photos are kept
            in memory. Defaults to `False`.
    """

    def read(path):
        if again:
            return large_photos.read_fitted(path, fit)
        return fit.decode(tf.io.read_file(path))

    return tf.function(
        read,
        input_signature=[tf.TensorSpec((), tf.string)],
        autograph=False,
    )


def decode_readable(
    contents, decode: Callable, image_shape: tuple[int, int, int]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes the readable files of a batch, inside a graph.

    A black image follows the last one, because a batch cannot be empty.

    Args:
        contents: String tensor `(batch,)`, the bytes of image files.
        decode: Function of a scalar string tensor that returns a float32
            tensor of `image_shape`, such as `ImageFit.decode`.
        image_shape: Height, width and channels.

    Returns:
        Tuple of an int32 tensor `(found + 1,)`, the rows of the decoded files
        in ascending order followed by `batch`, and a float32 tensor
        `(found + 1, *image_shape)`.
    """
    count = tf.size(contents)
    files = tf.data.Dataset.from_tensor_slices((tf.range(count), contents))

    @tf.autograph.experimental.do_not_convert
    def decode_row(row, content):
        return row, decode(content)

    images = files.map(decode_row, num_parallel_calls=tf.data.AUTOTUNE)
    spare = tf.data.Dataset.from_tensors((count, tf.zeros(image_shape)))
    return (
        images.ignore_errors(log_warning=False)
        .concatenate(spare)
        .batch(tf.cast(count, tf.int64) + 1)
        .get_single_element()
    )
