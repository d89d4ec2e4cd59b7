"""Speed of `keras-dml embed` against bare decoding and the bare forward pass.

All three go over the same JPEGs in the same process, in turn: `embed` reads,
decodes, resizes, embeds and writes shards; bare decoding reads, decodes and
resizes with an antialiased `tf.image.resize`; the bare forward pass embeds
batches that are in memory. The target is at least 0.9 of the slower of the
two.

On a machine without an accelerator both compete for the same cores, so even a
perfect overlap takes the sum of both processor times; the last line compares
with that.

    python benchmarks/embed.py RUN FOLDER [--side 500] [--json]

`RUN` is a run folder, `FOLDER` holds JPEGs. `--side` first writes them anew,
resized to that width and three quarters of it as height.
"""

import argparse
import itertools
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from keras_dml.data.image_list import list_images
from keras_dml.embed.local import embed_missing, make_settings
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.models import forward_function
from keras_dml.run.trained_run import TrainedRun

BATCH_SIZE = 128


def bare_decode(paths, size, batch_size):
    """The least that must be done to the files."""

    def load(path):
        image = tf.io.decode_jpeg(
            tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE"
        )
        return tf.image.resize(image, (size, size), antialias=True)

    dataset = tf.data.Dataset.from_tensor_slices(paths)
    dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    for _ in dataset.batch(batch_size).prefetch(tf.data.AUTOTUNE):
        pass


def bare_forward(forward, batch, count):
    """The model alone, on a batch in memory."""
    for _ in range(count // len(batch)):
        forward(batch).numpy()
    if count % len(batch):
        forward(batch[: count % len(batch)]).numpy()


def waiting_forward(forward, batch, repeats=5):
    """A forward pass that takes as long and no processor time."""
    forward(batch)
    times = [timed(lambda: forward(batch).numpy())[0] for _ in range(repeats)]
    seconds = float(np.median(times)) / len(batch)
    dim = forward(batch).shape[-1]

    def wait(images):
        time.sleep(seconds * len(images))
        return tf.zeros((len(images), dim))

    return wait


def resized_copies(folder, paths, side):
    """The same pictures, `side` pixels wide and three quarters as high."""
    copies = []
    for number, path in enumerate(paths):
        copy = folder / f"{number:05d}.jpg"
        with Image.open(path) as image:
            larger = image.convert("RGB").resize((side, side * 3 // 4))
        larger.save(copy, quality=90)
        copies.append(str(copy))
    return copies


def timed(function):
    """Wall and processor seconds of a call."""
    start, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - start, time.process_time() - cpu


def measure(run, folder, scratch, rounds, waiting):
    """Medians of the rates and of their ratios, measured in turns."""
    opened = TrainedRun(run)
    config = opened.config
    images = list_images(str(folder))
    count = len(images)
    paths = [images.path(row) for row in range(count)]
    forward = forward_function(opened.embedder)
    settings = make_settings(
        opened,
        images,
        shard_size=10_000,
        source=str(folder),
        format="npz",
        max_pixels=2**28 // 3,
    )
    size = config.data.image_shape[0]
    batch = tf.random.uniform((BATCH_SIZE, size, size, 3), 0, 255)
    numbers = itertools.count()
    if waiting:
        forward = waiting_forward(forward, batch)

    def embed():
        target = ShardFolder(scratch / f"shards-{next(numbers)}")
        target.create(settings)
        embed_missing(forward, images, target, config, BATCH_SIZE)
        assert target.finish()["rows"] == count

    makers = {
        "embed": embed,
        "decode": lambda: bare_decode(paths, size, BATCH_SIZE),
        "forward": lambda: bare_forward(forward, batch, count),
    }
    for function in makers.values():
        function()
    times = {name: [] for name in makers}
    for _ in range(rounds):
        for name, function in makers.items():
            times[name].append(timed(function))
    seconds = {name: np.asarray(values) for name, values in times.items()}
    slower = np.maximum(seconds["decode"], seconds["forward"])
    both = seconds["decode"] + seconds["forward"]
    wall = seconds["embed"][:, 0]
    cpu = {name: float(values[:, 1].min()) for name, values in seconds.items()}
    return {
        "images": count,
        "image_size": size,
        "rounds": rounds,
        **{
            f"{name}_images_per_second": count / float(np.median(values[:, 0]))
            for name, values in seconds.items()
        },
        **{
            f"{name}_cpu_ms_per_image": value * 1e3 / count
            for name, value in cpu.items()
        },
        "ratio_to_slower": float(np.median(slower[:, 0] / wall)),
        "ratio_to_slower_range": [
            float((slower[:, 0] / wall).min()),
            float((slower[:, 0] / wall).max()),
        ],
        "cpu_ratio_to_slower": max(cpu["decode"], cpu["forward"])
        / cpu["embed"],
        "ratio_to_both": float(np.median(both[:, 0] / wall)),
        "cpu_ratio_to_both": (cpu["decode"] + cpu["forward"]) / cpu["embed"],
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder of a finished run")
    parser.add_argument("folder", help="folder of JPEGs")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--side", type=int, help="resize the JPEGs first")
    parser.add_argument(
        "--waiting",
        action="store_true",
        help="replace the forward pass by a wait of the same time, as if an "
        "accelerator did it",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = sorted(Path(arguments.folder).rglob("*.jpg"))
    paths = [path.resolve() for path in found[: arguments.images]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "images")
        folder.mkdir()
        if arguments.side:
            resized_copies(folder, paths, arguments.side)
        else:
            for number, path in enumerate(paths):
                (folder / f"{number:05d}.jpg").symlink_to(path)
        result = measure(
            arguments.run,
            folder,
            Path(scratch),
            arguments.rounds,
            arguments.waiting,
        )
    if arguments.json:
        print(json.dumps(result))
        return
    for name in ("embed", "decode", "forward"):
        print(
            f"{name:8} {result[f'{name}_images_per_second']:7.0f} images/s  "
            f"{result[f'{name}_cpu_ms_per_image']:.2f} ms of processor time "
            "an image"
        )
    low, high = result["ratio_to_slower_range"]
    print(
        f"embed is {result['ratio_to_slower']:.2f} of the slower of both "
        f"({low:.2f} to {high:.2f}; by processor time "
        f"{result['cpu_ratio_to_slower']:.2f}; target 0.90)"
    )
    print(
        f"and {result['ratio_to_both']:.2f} of both one after the other (by "
        f"processor time {result['cpu_ratio_to_both']:.2f})"
    )


if __name__ == "__main__":
    main()
