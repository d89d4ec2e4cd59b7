"""Draws the box of a random resized crop as torchvision does."""

import math

import tensorflow as tf

from keras_dml.data.augmentation import (
    AREA_DRAWS,
    ASPECT_DRAWS,
    CROP_TRIES,
    PLACE_DRAWS,
)


def crop_sides(draw, area, aspect) -> tf.Tensor:
    """Draws ten candidates of a box's height and width.

    They do not depend on the image, so they are computed here for many images
    at once, which costs next to nothing, and not in
    `random_resized_crop_box`.

    Args:
        draw: float32 tensor `(..., NUM_DRAWS)`.
        area: Pair of floats, the range of the part of the image covered.
        aspect: Pair of floats, the range of width / height.

    Returns:
        float32 tensor `(..., 10, 2)` of height and width, in units of the
        square root of the image's area.
    """
    log_low, log_high = math.log(aspect[0]), math.log(aspect[1])
    part = area[0] + (area[1] - area[0]) * draw[..., AREA_DRAWS]
    log_ratio = log_low + (log_high - log_low) * draw[..., ASPECT_DRAWS]
    side, half_ratio = tf.sqrt(part), tf.exp(0.5 * log_ratio)
    return tf.stack([side / half_ratio, side * half_ratio], axis=-1)


def random_resized_crop_box(shape, sides, draw, aspect) -> tf.Tensor:
    """Draws a box as torchvision's `RandomResizedCrop` does.

    The area is uniform and the aspect ratio log-uniform. The box is the first
    of the ten candidates that fits into the image; if none fits, it is the
    largest centered box whose aspect ratio is in range.

    Args:
        shape: int32 tensor `(2,)`, the image's height and width.
        sides: float32 tensor `(10, 2)` of `crop_sides`.
        draw: float32 tensor `(NUM_DRAWS,)`.
        aspect: Pair of floats, the range of width / height.

    Returns:
        int32 tensor `(4,)`: top, left, height, width.
    """
    size = tf.cast(shape, tf.float32)
    tries = tf.round(tf.sqrt(tf.reduce_prod(size)) * sides)
    # The largest height for this width, and the largest width for this height.
    limits = tf.round(tf.reverse(size, [0]) * [1 / aspect[0], aspect[1]])
    largest = tf.maximum(tf.minimum(size, limits), 1.0)
    fits = tf.reduce_all((tries > 0) & (tries <= size), axis=1)
    first = tf.argmax(tf.concat([fits, [True]], 0), output_type=tf.int32)
    box = tf.concat([tries, largest[None]], 0)[first]
    room = size - box
    place = tf.where(
        first == CROP_TRIES,
        tf.floor(room / 2),
        tf.minimum(tf.floor(draw[PLACE_DRAWS] * (room + 1)), room),
    )
    return tf.cast(tf.concat([place, box], 0), tf.int32)
