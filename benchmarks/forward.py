"""Time to embed an image on a processor, a batch at once and a few at a time.

Both ways go over the same batch of 128 random images in the same process, in
turn; weights are random, which costs the same. `keras_dml.models` sends
`PIXELS_AT_ONCE` pixels through the network at a time where there is no GPU.

    python benchmarks/forward.py [BACKBONE@SIZE ...] [--rounds 5]
"""

import argparse
import math
import time

import numpy as np
import tensorflow as tf

from keras_dml.models import build_embedder, forward, forward_function

BATCH = 128
DEFAULT = [
    "mobilenet_v2@96",
    "mobilenet_v2@128",
    "mobilenet_v2@192",
    "resnet50@128",
    "efficientnet_v2_b0@128",
    "small_cnn@28",
]


def milliseconds(embed, batch, pixels):
    forward.PIXELS_AT_ONCE = pixels
    start = time.perf_counter()
    embed(batch).numpy()
    return (time.perf_counter() - start) / len(batch) * 1e3


def measure(name, size, rounds):
    """Milliseconds an image, at once and in parts, the best of each."""
    shape = (size, size, 3)
    embedder = build_embedder(name, shape, dim=128, weights="none")
    embed = forward_function(embedder)
    batch = tf.constant(np.random.default_rng(0).random((BATCH, *shape)))
    ways = [math.prod(batch.shape), forward.PIXELS_AT_ONCE]
    for pixels in ways:
        milliseconds(embed, batch, pixels)
    times = [
        [milliseconds(embed, batch, pixels) for pixels in ways]
        for _ in range(rounds)
    ]
    forward.PIXELS_AT_ONCE = ways[1]
    return np.min(times, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("| network | a batch at once | a few at a time | ratio |")
    print("|---|---|---|---|")
    for network in args.networks:
        name, size = network.split("@")
        whole, parts = measure(name, int(size), args.rounds)
        row = f"{whole:.2f} ms | {parts:.2f} ms | {parts / whole:.2f}"
        print(f"| {name}, {size} pixels | {row} |")


if __name__ == "__main__":
    main()
