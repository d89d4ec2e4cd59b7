"""TensorFlow functions that go into a SavedModel.

They must be of TensorFlow ops alone, without a Python callback: the process
that loads the model has neither Pillow nor keras_dml.
"""

from collections.abc import Callable

import tensorflow as tf

from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit, decode_readable
from keras_dml.export.image_header import count_pixels, first_gif_frame


def decode_image(contents, max_pixels: int = decoding.MAX_PIXELS) -> tf.Tensor:
    """Decodes JPEG, PNG, GIF, BMP and WebP; of an animation the first frame.

    Transparent pixels of PNG and WebP lie on white, as in training.

    Args:
        contents: Scalar string tensor, the bytes of the file.
        max_pixels: Integer, refuses larger images by their header, before
            they take memory. All frames of an animated WebP count. Defaults
            to 89,478,485, as in training.

    Returns:
        uint8 tensor `(height, width, 3)`.

    Raises:
        tf.errors.InvalidArgumentError: The image is damaged or too large.
    """
    is_gif = tf.strings.substr(contents, 0, 4) == b"GIF8"
    contents = tf.cond(
        is_gif, lambda: first_gif_frame(contents), lambda: contents
    )
    pixels = count_pixels(contents)
    small_enough = tf.debugging.Assert(
        pixels <= max_pixels,
        ["The image has too many pixels:", pixels, "of at most", max_pixels],
    )
    # Decoders know nothing of the assertion unless they wait for it.
    with tf.control_dependencies([small_enough]):
        contents = tf.identity(contents)
    image = tf.cond(
        tf.io.is_jpeg(contents),
        lambda: decoding.decode_jpeg(contents),
        lambda: tf.cond(
            tf.strings.substr(contents, 0, 4) == b"\x89PNG",
            lambda: _decode_png(contents),
            lambda: _decode_rare(contents),
        ),
    )
    return tf.ensure_shape(image, (None, None, 3))


def embed_image_bytes(
    embed: Callable[[tf.Tensor], tf.Tensor],
    contents,
    fit: ImageFit,
    max_pixels: int = decoding.MAX_PIXELS,
) -> dict[str, tf.Tensor]:
    """Embeds image files as the evaluation does.

    Args:
        embed: Function of float32 images `(batch, *fit.shape)` that returns
            embeddings.
        contents: String tensor `(batch,)`, the bytes of image files of any
            size.
        fit: `ImageFit`, how they are resized and cropped.
        max_pixels: Integer; larger images are not decoded. Defaults to
            89,478,485, as in training.

    Returns:
        Dict of "embedding", float32 `(batch, dim)`, and "ok", bool
        `(batch,)`: whether the image could be decoded. The embedding of one
        that could not is zero.
    """
    count = tf.size(contents)
    rows, images = decode_readable(
        contents, lambda one: fit.fit(decode_image(one, max_pixels)), fit.shape
    )
    # An empty batch fails in a convolution: the spare image is embedded when
    # all others are bad, and its row is cut off.
    good = tf.maximum(tf.size(rows) - 1, 1)
    rows, images = rows[:good, None], images[:good]
    embeddings = embed(images)
    marks = tf.ones((good,), tf.int32)
    dim = embeddings.shape[-1]
    return {
        "embedding": tf.scatter_nd(rows, embeddings, (count + 1, dim))[:-1],
        "ok": tf.scatter_nd(rows, marks, (count + 1,))[:-1] > 0,
    }


def _decode_png(contents):
    image = tf.io.decode_png(contents, channels=4)
    alpha = image[..., 3:]
    # TensorFlow gives opaque pixels of fewer than 8 bits the largest alpha of
    # that depth, such as 1.
    depth = tf.io.decode_raw(tf.strings.substr(contents, 24, 1), tf.uint8)[0]
    opaque = tf.cast(2 ** tf.minimum(tf.cast(depth, tf.int32), 8) - 1, tf.uint8)

    def blend():
        whole = tf.where(alpha == opaque, tf.constant(255, tf.uint8), alpha)
        return _on_white(tf.concat([image[..., :3], whole], axis=-1))

    # Most are opaque, and blending takes several times the memory.
    return tf.cond(
        tf.reduce_all(alpha == opaque), lambda: image[..., :3], blend
    )


def _on_white(image):
    # The products of two values of 8 bits fit into 16.
    return decoding.on_white(tf.cast(image, tf.uint16))


def _decode_rare(contents):
    return tf.cond(
        tf.strings.substr(contents, 8, 4) == b"WEBP",
        lambda: _decode_webp(contents),
        lambda: tf.io.decode_image(
            contents, channels=3, expand_animations=False
        ),
    )


def _decode_webp(contents):
    image = tf.io.decode_webp(contents)[0]
    return tf.cond(
        tf.shape(image)[-1] == 4,
        lambda: _on_white(image),
        lambda: image,
    )
