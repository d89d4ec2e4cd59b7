"""Measures the memory and the time of a step on a large batch, in chunks.

    python benchmarks/in_chunks.py --batch 1024 --chunks 64

Each way runs in a process of its own, which tells the peak of its memory.
MobileNetV2 starts from random weights, its batch normalization frozen.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

SIDE, STEPS = 96, 3


def measure(batch: int, chunk: int | None) -> dict[str, float]:
    """Trains a few steps; returns megabytes, seconds a step, and the loss."""
    import keras
    import numpy as np

    from keras_dml import losses
    from keras_dml.models import build_embedder, build_trainer

    keras.utils.set_random_seed(0)
    embedder = build_embedder(
        "mobilenet_v2",
        (SIDE, SIDE, 3),
        dim=128,
        weights="none",
        batch_norm="frozen",
    )
    trainer = build_trainer(embedder, 10, "embeddings", embed_batch=chunk)
    trainer.compile(keras.optimizers.SGD(0.01), losses.MultiSimilarity())
    rng = np.random.default_rng(0)
    labels = rng.integers(0, batch // 4, batch)
    images = rng.uniform(0, 255, (batch, SIDE, SIDE, 3)).astype("float32")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(STEPS):
        started = time.perf_counter()
        loss = trainer.train_on_batch(
            {"image": images, "label": labels}, labels
        )
        seconds.append(time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "MB more than before": (after - before) / 1024,
        "seconds a step": statistics.median(seconds[1:]),
        "loss": float(loss),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--chunks", default="64", help="numbers, by commas")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        chunk = int(given.one) or None
        print(json.dumps(measure(given.batch, chunk)))
        return
    ways = {f"{given.batch} whole": (given.batch, 0)}
    for chunk in map(int, given.chunks.split(",")):
        ways[f"{given.batch} in chunks of {chunk}"] = (given.batch, chunk)
        ways[f"{chunk} whole"] = (chunk, 0)
    for name, (batch, chunk) in ways.items():
        command = [sys.executable, __file__, "--batch", batch, "--one", chunk]
        done = subprocess.run(
            list(map(str, command)), check=True, stdout=subprocess.PIPE
        )
        found = json.loads(done.stdout)
        print(
            f"{name}: "
            + ", ".join(f"{key} {value:,.4g}" for key, value in found.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
