"""Resizes with antialiasing and crops, in one pass over the image."""

import tensorflow as tf


def resize(image, size, antialias: bool = True) -> tf.Tensor:
    """Resizes bilinearly, with antialiasing if the image shrinks.

    Args:
        image: Tensor `(height, width, channels)`.
        size: Pair of integers, the new height and width.
        antialias: Boolean. `False` makes shrinking about four times as fast,
            but leaves pixels out. Defaults to `True`.

    Returns:
        float32 tensor `(*size, channels)`.
    """

    def interpolate():
        return tf.raw_ops.ResizeBilinear(
            images=image[None], size=size, half_pixel_centers=True
        )[0]

    if not antialias:
        return interpolate()
    shape = tf.cast(tf.shape(image)[:2], tf.float32)
    scale = tf.cast(size, tf.float32) / shape
    # If nothing shrinks, both give the same pixels and `interpolate` is faster.
    return tf.cond(
        tf.reduce_all(scale >= 1.0),
        interpolate,
        lambda: _scale_and_translate(image, size, scale, tf.zeros(2)),
    )


def resize_and_crop(
    image,
    image_size: int,
    shorter_side: int | None = None,
    squash: bool = False,
    place=None,
) -> tf.Tensor:
    """Resizes an image and crops a square, and computes only the square.

    The shorter side becomes `shorter_side` and the longer one
    `floor(shorter_side * longer / shorter)`, as in torchvision.

    Args:
        image: Tensor `(height, width, channels)` or with a batch in front.
        image_size: Integer, the side of the square.
        shorter_side: Integer, at least `image_size`. Defaults to
            `image_size`.
        squash: Boolean, whether both sides become `shorter_side`. Defaults
            to `False`.
        place: float32 tensor `(2,)` in [0, 1), the vertical and horizontal
            place of the square. Defaults to the center.

    Returns:
        float32 tensor `(..., image_size, image_size, channels)`.
    """
    target = image_size if shorter_side is None else shorter_side
    # The longer side of a thin image may exceed int32.
    shape = tf.shape(image, tf.int64)[-3:-1]
    if squash:
        resized = tf.fill([2], target)
    else:
        resized = target * shape // tf.reduce_min(shape)
    room = tf.cast(resized - image_size, tf.float32)
    if place is None:
        corner = tf.round(room / 2)
    else:
        corner = tf.minimum(tf.floor(place * (room + 1)), room)
    scale = tf.cast(resized, tf.float32) / tf.cast(shape, tf.float32)
    return _scale_and_translate(image, (image_size, image_size), scale, -corner)


def _scale_and_translate(image, size, scale, translation):
    batched = len(image.shape) == 4
    result = tf.raw_ops.ScaleAndTranslate(
        images=image if batched else image[None],
        size=size,
        scale=scale,
        translation=translation,
        kernel_type="triangle",
        antialias=True,
    )
    return result if batched else result[0]
