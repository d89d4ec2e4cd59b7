"""Speed of the training input against bare decoding, cropping and resizing.

Both read the same files in the same process, in turn. The ratio is the
library's images per second over those of the bare pipeline, which draws its
boxes in numpy beforehand and does nothing but `tf.io.decode_and_crop_jpeg`
and an antialiased `tf.image.resize`. The target is at least 0.9.

    python benchmarks/input_pipeline.py [--folder FOLDER] [--json]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from keras_dml.data import augmentation
from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import train_batches
from keras_dml.data.random_crop import crop_sides, random_resized_crop_box
from keras_dml.data.shuffled_passes import random_batches

DRAWN_BOXES = 2048


def make_photos(folder, count=256, seed=0):
    """Writes JPEGs of 256-400 px whose spectrum falls off as in photos."""
    generator = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        height, width = generator.integers(256, 401, 2)
        pixels = np.zeros((height, width, 3))
        for side in (4, 8, 16, 32, 64, 128):
            coarse = generator.normal(size=(side, side, 3)) * 200 / side**0.7
            for channel in range(3):
                layer = Image.fromarray(coarse[..., channel])
                layer = layer.resize((int(width), int(height)), Image.BICUBIC)
                pixels[..., channel] += np.asarray(layer)
        pixels = np.clip(pixels + 127, 0, 255).astype(np.uint8)
        path = folder / f"{number:04d}.jpg"
        Image.fromarray(pixels).save(path, quality=90)
        paths.append(str(path))
    return paths


def bare_pipeline(paths, image_size, batch_size, antialias=True):
    """Decodes drawn boxes and resizes them: the least that training needs."""
    generator = np.random.default_rng(0)
    passes = -(-DRAWN_BOXES // len(paths))
    order = np.concatenate(
        [generator.permutation(paths) for _ in range(passes)]
    )
    shapes = [Image.open(path).size[::-1] for path in order]
    aspect = (3 / 4, 4 / 3)
    draws = tf.constant(augmentation.draws(0, 0, 0, len(order)))
    boxes = tf.vectorized_map(
        lambda item: random_resized_crop_box(*item, aspect),
        (
            tf.constant(shapes),
            crop_sides(draws, (0.08, 1.0), aspect),
            draws,
        ),
    )

    def load(path, box):
        image = tf.io.decode_and_crop_jpeg(
            tf.io.read_file(path), box, channels=3
        )
        size = (image_size, image_size)
        return tf.image.resize(image, size, antialias=antialias)

    dataset = tf.data.Dataset.from_tensor_slices((order.tolist(), boxes))
    return (
        dataset.repeat()
        .map(load, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )


def library_pipeline(paths, image_size, batch_size):
    """The training input as `fit` uses it: random boxes, flips, labels."""
    manifest = Manifest(
        name="benchmark",
        labels=np.zeros(len(paths), dtype=np.int64),
        class_names=["photo"],
        ids=paths,
        paths=paths,
    )
    return train_batches(
        manifest,
        lambda epoch: random_batches(
            len(paths), batch_size, 0, epoch, drop_remainder=True
        ),
        image_size=image_size,
        augmentation=augmentation.Augmentation(flip=True),
    )


def rate(iterator, batches, batch_size):
    """Images per second, and processor milliseconds per image."""
    start, start_cpu = time.perf_counter(), time.process_time()
    for _ in range(batches):
        next(iterator)
    images = batches * batch_size
    cpu = (time.process_time() - start_cpu) * 1e3 / images
    return images / (time.perf_counter() - start), cpu


def measure(paths, image_size=224, batch_size=32, batches=30, rounds=7):
    """Medians of both pipelines and of their ratios, measured in turns.

    The ratio of the least processor times per image is given too, which
    depends less on what else the machine does.
    """
    makers = {
        "library": lambda: library_pipeline(paths, image_size, batch_size),
        "bare": lambda: bare_pipeline(paths, image_size, batch_size),
    }
    rates = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            # A fresh iterator each time: an idle one would fill its buffers
            # on the time of the other pipeline.
            iterator = iter(make())
            rate(iterator, 5, batch_size)
            rates[name].append(rate(iterator, batches, batch_size))
            del iterator
    library, bare = np.array(rates["library"]), np.array(rates["bare"])
    ratios = library[:, 0] / bare[:, 0]
    return {
        "ratio": float(np.median(ratios)),
        "ratio_min": float(ratios.min()),
        "ratio_max": float(ratios.max()),
        "cpu_ratio": float(bare[:, 1].min() / library[:, 1].min()),
        "library_images_per_second": float(np.median(library[:, 0])),
        "bare_images_per_second": float(np.median(bare[:, 0])),
        "library_cpu_ms_per_image": float(library[:, 1].min()),
        "bare_cpu_ms_per_image": float(bare[:, 1].min()),
        "image_size": image_size,
        "batch_size": batch_size,
        "files": len(paths),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="JPEGs to read instead of made ones")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.folder:
            files = sorted(Path(arguments.folder).rglob("*.jpg"))
            paths = [str(path) for path in files]
        else:
            paths = make_photos(Path(scratch))
        result = measure(
            paths,
            arguments.image_size,
            arguments.batch_size,
            rounds=arguments.rounds,
        )
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            f"input pipeline: {result['ratio']:.2f} of bare decode + resize "
            f"({result['library_images_per_second']:.0f} against "
            f"{result['bare_images_per_second']:.0f} images/s; by processor "
            f"time {result['cpu_ratio']:.2f}; target 0.90)"
        )


if __name__ == "__main__":
    main()
