"""Time to embed on a processor, batch normalization folded and not.

Both ways take turns in one process; the best of their calls. The weights of
the networks are random, which costs the same.

    python benchmarks/folding.py [BACKBONE@SIZE ...] [--turns 2]
"""

import argparse
import time
from unittest import mock

import numpy as np

from keras_dml.models import build_embedder, forward, forward_function

DEFAULT = [
    "mobilenet_v2@96",
    "mobilenet_v2@192",
    "resnet50@128",
    "bn_inception@128",
    "small_cnn@28",
]
BATCHES = (1, 8, 64)
SECONDS = 2.0


def milliseconds(embed, images):
    """The best of several calls, by image."""
    embed(images).numpy()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        embed(images).numpy()
        times.append(time.perf_counter() - start)
    return min(times) / len(images) * 1e3


def functions(name, size):
    """The plain and the folded function of one network."""
    shape = (size, size, 3)
    options = {"dim": 512, "weights": "none"}
    # Each way has an embedder of its own, because it has one function.
    plain, folded = (build_embedder(name, shape, **options) for _ in range(2))
    with mock.patch.object(forward, "fold_for_inference", lambda model: model):
        unfolded = forward_function(plain)
    return (plain, unfolded), (folded, forward_function(folded))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=DEFAULT)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    print("| network | batch | plain | folded | ratio |")
    print("|---|---|---|---|---|")
    for network in arguments.networks:
        name, size = network.split("@")
        (_plain, unfolded), (_folded, folded) = functions(name, int(size))
        for batch in BATCHES:
            images = np.random.default_rng(0).uniform(
                0, 255, (batch, int(size), int(size), 3)
            )
            images = images.astype("float32")
            times = [
                (milliseconds(unfolded, images), milliseconds(folded, images))
                for _ in range(arguments.turns)
            ]
            plain, fold = np.min(times, axis=0)
            print(
                f"| {network} | {batch} | {plain:.2f} | {fold:.2f} | "
                f"{fold / plain:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
