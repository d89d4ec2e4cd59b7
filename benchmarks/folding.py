"""Time to embed on a processor, batch normalization folded and not.

Folded kernels are scaled in every call, as in Python, or copied once, as in a
SavedModel. The ways take turns in one process; the best of their calls, with
its share of the plain one's. The weights of the networks are random, which
costs the same.

    python benchmarks/folding.py [BACKBONE@SIZE ...] [--turns 2]
"""

import argparse
import time
from unittest import mock

import numpy as np

from keras_dml.models import (
    build_embedder,
    fold_for_inference,
    forward,
    forward_function,
)

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


def ways(name, size):
    """The functions that embed, by name, and the models that they need."""
    shape = (size, size, 3)
    options = {"dim": 512, "weights": "none"}
    # Each way has an embedder of its own, because it has one function.
    plain, folded = (build_embedder(name, shape, **options) for _ in range(2))
    copied = fold_for_inference(folded, copies=True)
    with mock.patch.object(forward, "fold_for_inference", lambda model: model):
        found = {"plain": forward_function(plain)}
    found |= {"folded": forward_function(folded)}
    return found | {"copied": forward_function(copied)}, (plain, folded, copied)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=DEFAULT)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    print("| network | batch | plain | folded | copied |")
    print("|---|---|---|---|---|")
    for network in arguments.networks:
        name, size = network.split("@")
        functions, _models = ways(name, int(size))
        for batch in BATCHES:
            images = np.random.default_rng(0).uniform(
                0, 255, (batch, int(size), int(size), 3)
            )
            images = images.astype("float32")
            times = [
                [milliseconds(embed, images) for embed in functions.values()]
                for _ in range(arguments.turns)
            ]
            plain, *others = np.min(times, axis=0)
            ratios = " | ".join(
                f"{other:.2f} ({other / plain:.2f})" for other in others
            )
            print(
                f"| {network} | {batch} | {plain:.2f} | {ratios} |", flush=True
            )


if __name__ == "__main__":
    main()
