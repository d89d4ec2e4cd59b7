"""Batches of images for training and for evaluation, as tf.data datasets.

Their functions have no Python loops over tensors, and AutoGraph, which would
convert everything that they call, takes seconds: they are not converted.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_dml.data import augmentation as augment
from keras_dml.data import decoding
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.fixed_parallelism import BATCHES_AHEAD, fixed_parallelism
from keras_dml.data.image_fit import ImageFit, file_reader
from keras_dml.data.index_batches import Replicas, index_batches
from keras_dml.data.large_photos import is_keeping
from keras_dml.data.loading import load_images, on_cpu
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError


def train_batches(
    manifest: Manifest,
    sampler: Callable[[int], Sequence[np.ndarray]],
    *,
    image_size: int,
    channels: int = 3,
    seed: int = 0,
    first_epoch: int = 0,
    first_step: int = 0,
    replicas: Replicas | None = None,
    steps_per_epoch: int | None = None,
    augmentation: Augmentation | None = None,
) -> tf.data.Dataset:
    """Returns an endless dataset of batches of augmented images.

    The content of an epoch depends on `seed` and its number only, not on
    where the run started. To see an image in several views, let the sampler
    name its row several times: every place in a batch has its own draws.

    Args:
        manifest: `Manifest` of training images, labeled 0..C-1.
        sampler: Function of the epoch that returns its batches: arrays of
            rows of `manifest`, as `balanced_batches` and `random_batches`
            do. All batches must have the same size, and all epochs the same
            number of batches.
        image_size: Integer, the side of the square images.
        channels: 3 for RGB or 1 for luma. Defaults to `3`.
        seed: Non-negative integer. Defaults to `0`.
        first_epoch: Integer, the epoch to start at. Defaults to `0`.
        first_step: Integer, the step of that epoch to start at. Defaults to
            `0`.
        replicas: `Replicas` of this process that train together with others;
            the dataset then holds their parts of every batch, one after the
            other. Defaults to `None`, whole batches.
        steps_per_epoch: Integer, the number of batches that an epoch must
            have. Defaults to the number that the sampler gives.
        augmentation: `Augmentation`. Defaults to `Augmentation()`.

    Returns:
        Dataset of `({"image": float32 (batch, image_size, image_size,
        channels) in 0..255, "label": int32 (batch,)}, int32 (batch,))`, with
        a static batch size. If images have several labels, the second part is
        the matrix of the pairs that share one, int32 `(batch, batch)`, for a
        loss on pairs; and "label" is the row of each image in the manifest.
        With the embeddings of a teacher, the first part has "teacher" too.

    Raises:
        UsageError: If the sampler gives another number of batches, batches of
            different sizes, or a size that the replicas do not divide; if
            images have several labels and several workers train; or if
            `channels` or the resizing is invalid.

    Example:

    ```python
    batches = train_batches(
        manifest,
        lambda epoch: balanced_batches(manifest.labels, 8, 4, 0, epoch),
        image_size=96,
    )
    ```
    """
    augmentation = augmentation or Augmentation()
    fit = ImageFit(
        image_size, channels, augmentation.resize, augmentation.squash
    )
    replicas = replicas or Replicas()
    sizes = [len(rows) for rows in sampler(first_epoch)]
    _check_batches(sizes, steps_per_epoch, replicas.total)
    several = manifest.has_label_sets
    if several and replicas.count < replicas.total:
        raise UsageError(
            "Images with several labels must be trained by one worker: the "
            "pairs of a batch are of the images of all. Received: "
            f"{replicas.total} replicas, {replicas.count} of this worker."
        )
    batch_size = sizes[0] // replicas.total
    batches = index_batches(
        sampler, (len(sizes), sizes[0]), seed, first_epoch, first_step, replicas
    )
    batches = load_images(manifest, batches, batch_size, augmentation, fit)
    labels = on_cpu(manifest.labels.astype(np.uint8 if several else np.int32))
    teacher = None if manifest.teacher is None else on_cpu(manifest.teacher)
    turns = None if manifest.turn is None else on_cpu(manifest.turn)

    @tf.autograph.experimental.do_not_convert
    def finish(rows, draw, images):
        images = decoding.to_channels(images, channels)
        if turns is not None:
            images = augment.quarter_turns(images, tf.gather(turns, rows))
        if augmentation.has_affine:
            images = augment.random_affine(images, draw, augmentation)
        if augmentation.has_color:
            images = augment.random_color(images, draw, augmentation)
        own = tf.gather(labels, rows)
        inputs = {"image": images, "label": own}
        if teacher is not None:
            inputs["teacher"] = tf.gather(teacher, rows)
        if not several:
            return inputs, own
        own = tf.cast(own, tf.float32)
        pairs = tf.cast(tf.matmul(own, own, transpose_b=True) > 0, tf.int32)
        return {**inputs, "label": tf.cast(rows, tf.int32)}, pairs

    batches = batches.map(finish, num_parallel_calls=tf.data.AUTOTUNE)
    return fixed_parallelism(batches.prefetch(BATCHES_AHEAD))


def _check_batches(sizes, steps_per_epoch, num_replicas):
    """Raises if the batches of an epoch have wrong sizes or a wrong number."""
    if not sizes:
        raise UsageError(
            "`sampler` must give at least one batch an epoch. Received: none. "
            "Make the batches smaller."
        )
    if steps_per_epoch not in (None, len(sizes)):
        raise UsageError(
            "`steps_per_epoch` must be the number of batches that `sampler` "
            f"gives, {len(sizes)}. Received: "
            f"steps_per_epoch={steps_per_epoch}"
        )
    if len(set(sizes)) > 1 or sizes[0] % num_replicas:
        raise UsageError(
            "All batches must have one size that divides by the replicas. "
            f"Received: sizes {sorted(set(sizes))}, {num_replicas} replicas"
        )


def evaluation_batches(
    manifest: Manifest,
    *,
    batch_size: int,
    image_size: int,
    channels: int = 3,
    resize: int | None = None,
    squash: bool = False,
    again: bool = False,
) -> tf.data.Dataset:
    """Returns a dataset of all images once, in the order of the manifest.

    Resizes the shorter side with antialiasing, then crops the center.

    Args:
        manifest: `Manifest`.
        batch_size: Integer; the last batch holds the rest.
        image_size: Integer, the side of the square images.
        channels: 3 for RGB or 1 for luma. Defaults to `3`.
        resize: Integer, the shorter side before the crop. Defaults to
            `image_size`.
        squash: Boolean, whether both sides become `resize`. Defaults to
            `False`.
        again: Boolean, whether the images will be read again, so that a run
            keeps large photos in memory. Defaults to `False`.

    Returns:
        Dataset of `({"image", "label"}, label)`, as `train_batches` yields
        them; the labels of images with several are int32 `(batch, classes)`.

    Raises:
        UsageError: If `channels` is neither 1 nor 3, or `resize` is smaller
            than `image_size`.
    """
    fit = ImageFit(image_size, channels, resize, squash)
    labels = tf.data.Dataset.from_tensor_slices(
        manifest.labels.astype(np.int32)
    ).batch(batch_size)

    if manifest.images is None:
        images = tf.data.Dataset.from_tensor_slices(manifest.file_names)
        images = images.map(
            file_reader(fit, again and is_keeping()),
            num_parallel_calls=tf.data.AUTOTUNE,
        ).batch(batch_size)
    else:
        pixels = on_cpu(manifest.images)
        images = tf.data.Dataset.range(len(manifest)).batch(batch_size)

        @tf.autograph.experimental.do_not_convert
        def look_up(rows):
            return fit.fit(tf.gather(pixels, rows))

        images = images.map(look_up, num_parallel_calls=tf.data.AUTOTUNE)

    if manifest.turn is not None:
        turns = tf.data.Dataset.from_tensor_slices(manifest.turn)
        images = tf.data.Dataset.zip(images, turns.batch(batch_size)).map(
            augment.quarter_turns
        )
    dataset = tf.data.Dataset.zip({"image": images, "label": labels}, labels)
    return fixed_parallelism(dataset.prefetch(BATCHES_AHEAD))
