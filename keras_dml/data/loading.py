"""Loads the images of training batches, cropped, flipped and resized.

AutoGraph converts none of these functions, see `pipeline`.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_dml.data import augmentation as augment
from keras_dml.data import decoding, resizing
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.image_fit import ImageFit
from keras_dml.data.large_photos import (
    is_keeping,
    read_smaller,
    smallest_side,
)
from keras_dml.data.manifest import Manifest
from keras_dml.data.random_crop import crop_sides, random_resized_crop_box


def on_cpu(values: Any) -> tf.Tensor:
    """Makes a constant on the host, because tf.data runs there."""
    with tf.device("CPU:0"):
        return tf.constant(values)


def load_images(
    manifest: Manifest,
    batches: tf.data.Dataset,
    batch_size: int,
    augmentation: Augmentation,
    fit: ImageFit,
) -> tf.data.Dataset:
    """Yields (rows, draws, images), cropped, flipped and resized.

    Args:
        manifest: The images.
        batches: Dataset of (rows, draws), as `index_batches` returns it.
        batch_size: Number of images in a batch of one replica.
        augmentation: `Augmentation`.
        fit: The size and the channels of the images.
    """
    load = _arrays if manifest.paths is None else _files
    return load(manifest, batches, batch_size, augmentation, fit)


def _files(manifest, batches, batch_size, augmentation, fit):
    paths = on_cpu(manifest.file_names)
    fit = dataclasses.replace(fit, channels=3)
    side = smallest_side(fit.size, augmentation)
    keeps = is_keeping()

    @tf.autograph.experimental.do_not_convert
    def look_up(rows, draw):
        # Runs on many images at once, which costs less than one by one.
        rows = tf.reshape(rows, [-1])
        draw = tf.reshape(draw, [-1, augment.NUM_DRAWS])
        sides = crop_sides(draw, augmentation.area, augmentation.aspect)
        return rows, draw, sides, tf.gather(paths, rows)

    @tf.autograph.experimental.do_not_convert
    def load(row, draw, sides, path):
        if augmentation.crop == "random_resized":
            image = decoding.decode_and_crop(
                read_smaller(path, side) if keeps else tf.io.read_file(path),
                lambda shape: random_resized_crop_box(
                    shape, sides, draw, augmentation.aspect
                ),
                least_side=fit.size,
            )
            image = _flip(image, draw, augmentation)
            image = _resize_box(image, augmentation, fit)
        else:
            image = decoding.decode(tf.io.read_file(path))
            image = _flip(image, draw, augmentation)
            image = fit.fit(image, _place(draw, augmentation))
        return row, draw, tf.ensure_shape(image, fit.shape)

    images = batches.map(look_up).unbatch()
    images = images.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(batch_size, drop_remainder=True)


def _arrays(manifest, batches, batch_size, augmentation, fit):
    """Works on a whole batch at once if possible."""
    images = on_cpu(manifest.images)
    fit = dataclasses.replace(fit, channels=images.shape[-1])

    def crop(item):
        image, draw = item
        if augmentation.crop == "random":
            return fit.fit(image, _place(draw, augmentation))
        box = random_resized_crop_box(
            tf.shape(image)[:2],
            crop_sides(draw, augmentation.area, augmentation.aspect),
            draw,
            augmentation.aspect,
        )
        image = decoding.crop_box(image, box)
        return _resize_box(image, augmentation, fit)

    @tf.autograph.experimental.do_not_convert
    def load(rows, draw):
        pixels = tf.gather(images, rows)
        if augmentation.flip:
            pixels = tf.where(
                augment.flips(draw)[:, None, None, None],
                tf.reverse(pixels, [2]),
                pixels,
            )
        if augmentation.crop == "center":
            pixels = fit.fit(pixels)
        else:
            pixels = tf.map_fn(
                crop, (pixels, draw), fn_output_signature=tf.float32
            )
        return rows, draw, tf.ensure_shape(pixels, (batch_size, *fit.shape))

    return batches.unbatch().map(load, num_parallel_calls=tf.data.AUTOTUNE)


def _resize_box(image, augmentation, fit):
    return resizing.resize(image, fit.shape[:2], augmentation.antialias)


def _place(draw, augmentation):
    """Returns the place of the crop, or `None` for the center."""
    return augment.places(draw) if augmentation.crop == "random" else None


def _flip(image, draw, augmentation):
    if not augmentation.flip:
        return image
    # `tf.reverse` with an empty list of axes changes nothing.
    times = tf.cast(augment.flips(draw), tf.int32)
    return tf.reverse(image, tf.fill([times], 1))
