"""What the endpoints of a SavedModel add to the work that they are for.

Run `python benchmarks/serving.py` for MobileNetV2 at 96 pixels. Each endpoint
alternates in one process with its parts run by themselves, so that other work
on the machine meets both; besides wall times, processor times of all threads
are compared.

- `serve` beside the Keras model's own forward pass in a `tf.function`.
- `serve_image_bytes` beside decoding the same JPEG files to batches with
  `tf.data` and the same forward pass.
- `neighbors_of_embedding` beside that forward pass, over an index of random
  unit rows around as many centers as a gallery has classes.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_dml.data import decoding, resizing
from keras_dml.embeddings import EmbeddingSet
from keras_dml.export import export_saved_model, index_parity, read_manifest
from keras_dml.models import build_embedder

LIMITS = {"serve": 1.05, "serve_image_bytes": 0.9, "neighbors": 0.2}


def make_embedder(arguments):
    keras.utils.set_random_seed(arguments.seed)
    size = arguments.image_size
    return build_embedder(
        arguments.backbone, (size, size, 3), weights="none", dim=arguments.dim
    )


def make_gallery(arguments):
    """Rows in clusters, as embeddings of classes are."""
    generator = np.random.default_rng(arguments.seed)
    classes = max(1, arguments.references // 10)
    centers = generator.normal(size=(classes, arguments.dim))
    labels = generator.integers(0, classes, arguments.references)
    noise = generator.normal(size=(arguments.references, arguments.dim))
    rows = (centers[labels] + 0.7 * noise).astype("float32")
    ids = np.array([f"{label}/{row}.jpg" for row, label in enumerate(labels)])
    return EmbeddingSet(rows, labels, ids)


def make_files(arguments):
    """JPEG files of smooth random pictures."""
    generator = np.random.default_rng(arguments.seed)
    height, width = arguments.picture
    files = []
    for _ in range(arguments.batch_size):
        small = generator.uniform(0, 255, (1, 12, 12, 3))
        picture = tf.image.resize(small, (height, width), "bicubic")
        picture += generator.normal(0, 8, picture.shape)
        pixels = tf.saturate_cast(picture[0], tf.uint8)
        files.append(tf.io.encode_jpeg(pixels, quality=90).numpy())
    return tf.constant(files)


def bare_decode(size):
    """Decodes and resizes a batch of JPEG files, in parallel."""

    def fit(content):
        return resizing.resize_and_crop(decoding.decode_jpeg(content), size)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def decode(contents):
        return (
            tf.data.Dataset.from_tensor_slices(contents)
            .map(fit, num_parallel_calls=tf.data.AUTOTUNE)
            .batch(tf.size(contents, tf.int64))
            .get_single_element()
        )

    return decode


def alternate(calls, rounds, repeats):
    """Seconds of wall and of processor time of each, taken in turns.

    Of each round the fastest call is kept, for what else the machine does only
    ever adds, and of these the median.
    """
    for call in calls.values():
        call()
        call()
    times = {name: [] for name in calls}
    for _ in range(rounds):
        fastest = {name: [np.inf, np.inf] for name in calls}
        for _ in range(repeats):
            for name, call in calls.items():
                wall, processor = time.perf_counter(), time.process_time()
                call()
                fastest[name] = np.minimum(
                    fastest[name],
                    [
                        time.perf_counter() - wall,
                        time.process_time() - processor,
                    ],
                )
        for name, pair in fastest.items():
            times[name].append(pair)
    return {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in times.items()
    }


def measure(arguments, folder):
    embedder = make_embedder(arguments)
    gallery = make_gallery(arguments)
    start = time.perf_counter()
    path = export_saved_model(
        embedder,
        folder / "m",
        with_index=True,
        index=arguments.index,
        gallery=gallery,
    )
    exported = time.perf_counter() - start
    served = tf.saved_model.load(str(path))
    shape = (None, *embedder.input_shape[1:])

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
    def forward(images):
        return embedder(images, training=False)

    decode = bare_decode(arguments.image_size)
    files = make_files(arguments)
    images = decode(files)
    embeddings = tf.constant(gallery.embeddings[: arguments.batch_size])
    k = tf.constant(arguments.k)
    calls = {
        "forward": lambda: forward(images).numpy(),
        "serve": lambda: served.serve(images)["embedding"].numpy(),
        "decode": lambda: decode(files).numpy(),
        "serve_image_bytes": lambda: served.serve_image_bytes(files)[
            "embedding"
        ].numpy(),
        "search": lambda: served.neighbors_of_embedding(embeddings, k)[
            "ids"
        ].numpy(),
        "neighbors": lambda: served.neighbors(files, k)["ids"].numpy(),
    }
    times = alternate(calls, arguments.rounds, arguments.repeats)
    ratios = {}
    for position, kind in enumerate(("wall", "processor")):
        one = {name: pair[position] for name, pair in times.items()}
        ratios[kind] = {
            "serve": one["serve"] / one["forward"],
            "serve_image_bytes": (one["decode"] + one["forward"])
            / one["serve_image_bytes"],
            "neighbors": one["search"] / one["forward"],
        }
    return {
        "limits": LIMITS,
        "index": read_manifest(path)["index"]["kind"],
        "export_seconds": exported,
        "parity": index_parity(path, gallery, seconds=0.1),
        "milliseconds": {
            name: [1e3 * value for value in pair]
            for name, pair in times.items()
        },
        "ratios": ratios,
        "passed": all(
            ratio["serve"] <= LIMITS["serve"]
            and ratio["serve_image_bytes"] >= LIMITS["serve_image_bytes"]
            and ratio["neighbors"] <= LIMITS["neighbors"]
            for ratio in ratios.values()
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="mobilenet_v2")
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument(
        "--picture", type=int, nargs=2, default=[360, 480], help="JPEG's size"
    )
    parser.add_argument("--references", type=int, default=100_000)
    parser.add_argument("--index", default="auto")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(result))
        return
    for name, (wall, processor) in result["milliseconds"].items():
        print(
            f"{name:20} {wall:8.2f} ms, processor {processor:8.2f} ms, "
            f"batch of {arguments.batch_size}"
        )
    for kind, ratios in result["ratios"].items():
        print(
            f"{kind}: serve / forward {ratios['serve']:.3f} (at most 1.05); "
            "(decode + forward) / serve_image_bytes "
            f"{ratios['serve_image_bytes']:.3f} (at least 0.9); "
            f"search / forward {ratios['neighbors']:.3f} (at most 0.2)"
        )
    print(
        f"Index: {result['index']}, {arguments.references:,} references, "
        f"{json.dumps(result['parity'])}"
    )
    print(f"Passed: {result['passed']}")


if __name__ == "__main__":
    main()
