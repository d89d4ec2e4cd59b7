"""Speed of reading large photos in a training, with and without copies.

Milliseconds a photo of 4,000 x 3,000 pixels: to crop it at random to 160
pixels, and to fit it to 224 for a validation; decoded each time, decoded and
kept, and from what was kept.

    python benchmarks/large_photos.py [--count 48] [--side 3000]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from keras_dml.data import large_photos
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.image_fit import file_reader
from keras_dml.data.manifest import Manifest
from keras_dml.data.pipeline import evaluation_batches, train_batches

BATCH = 16


def make_photos(folder, count, side):
    """Writes JPEGs that are smooth but for the noise of a sensor."""
    generator = np.random.default_rng(0)
    paths = []
    for number in range(count):
        coarse = generator.integers(0, 256, (40, 30, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((side, side * 4 // 3))
        noise = generator.integers(-12, 13, (side * 4 // 3, side, 1))
        pixels = np.clip(np.asarray(smooth) + noise, 0, 255).astype(np.uint8)
        paths.append(str(folder / f"{number}.jpg"))
        Image.fromarray(pixels).save(paths[-1], quality=90)
    return paths


def passes(manifest):
    """Functions that read all photos once, by what they are for."""
    rows = np.arange(len(manifest)).reshape(-1, BATCH)
    training = iter(
        train_batches(
            manifest,
            lambda epoch: list(rows),
            image_size=160,
            augmentation=Augmentation(
                crop="random_resized", area=(0.3, 1.0), resize=160
            ),
        )
    )

    def train():
        for _ in rows:
            next(training)

    def validate():
        batches = evaluation_batches(
            manifest, batch_size=BATCH, image_size=224, again=True
        )
        for _ in batches:
            pass

    return {"training": train, "validation": validate}


def timed(read):
    """Milliseconds of a pass."""
    started = time.perf_counter()
    read()
    return (time.perf_counter() - started) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--side", type=int, default=3000)
    arguments = parser.parse_args()
    count = arguments.count // BATCH * BATCH
    with tempfile.TemporaryDirectory() as folder:
        paths = make_photos(Path(folder), count, arguments.side)
        manifest = Manifest(
            name="photos",
            labels=np.arange(count) % 2,
            class_names=["a", "b"],
            ids=paths,
            paths=paths,
        )
        for worth in (10**6, large_photos.WORTH):
            large_photos.WORTH = worth
            file_reader.cache_clear()  # It was traced with the other worth.
            with large_photos.keeping():
                for name, read in passes(manifest).items():
                    shown = ", ".join(
                        f"{timed(read) / count:.1f}" for _ in "1234"
                    )
                    print(f"{name}, {large_photos.kept()} kept: {shown} ms")


if __name__ == "__main__":
    main()
