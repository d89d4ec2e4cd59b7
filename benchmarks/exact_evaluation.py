"""Exact retrieval metrics against the bare matrix product they rest on.

Run `python benchmarks/exact_evaluation.py --rows 60502 --classes 11316` for
the size of Stanford Online Products' test set. The metrics run once alone, for
the memory they take. Then they and the bare product take turns in one process
on the same cores, block of queries by block of queries, so that other work on
the machine meets both alike.
"""

import argparse
import json
import resource
import sys
import time
from unittest import mock

import numpy as np

from keras_dml.evaluation import ExactIndex, evaluate_retrieval


def make_embeddings(rows, dim, classes, noise, seed):
    """Unit rows around one random direction for each class."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(rows) % classes)
    centers = generator.standard_normal((classes, dim), dtype=np.float32)
    embeddings = noise * generator.standard_normal(
        (rows, dim), dtype=np.float32
    )
    embeddings += centers[labels]
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings, labels


class Clock:
    """Wall and processor seconds between `start` and `stop`, added up."""

    def __init__(self):
        self.wall = self.processor = 0.0

    def start(self):
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def stop(self):
        self.wall += time.perf_counter() - self._wall
        self.processor += time.process_time() - self._processor


def metrics(embeddings, labels, k):
    return evaluate_retrieval(embeddings, labels, k=k).metrics


def take_turns(embeddings, labels, k):
    """Clocks of the metrics and of the product of the same blocks."""
    whole, bare = Clock(), Clock()
    blocks = ExactIndex.positive_rank_blocks
    buffer = None

    def with_products(index, queries, *arguments):
        nonlocal buffer
        start = 0
        for ranks in blocks(index, queries, *arguments):
            whole.stop()
            block = embeddings[start : start + ranks.num_queries]
            if buffer is None:
                buffer = np.empty((len(block), len(embeddings)), np.float32)
                # Its pages are there before the clock runs.
                buffer.fill(0)
            bare.start()
            np.matmul(block, embeddings.T, out=buffer[: len(block)])
            bare.stop()
            start += len(block)
            whole.start()
            yield ranks

    with mock.patch.object(ExactIndex, "positive_rank_blocks", with_products):
        whole.start()
        metrics(embeddings, labels, k)
        whole.stop()
    return whole, bare


def peak_memory():
    """Largest resident size of the process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def measure(arguments):
    embeddings, labels = make_embeddings(
        arguments.rows,
        arguments.dim,
        arguments.classes,
        arguments.noise,
        arguments.seed,
    )
    peak_before = peak_memory()
    values = metrics(embeddings, labels, arguments.k)
    peak = peak_memory()
    turns = [
        take_turns(embeddings, labels, arguments.k)
        for _ in range(arguments.repeats)
    ]
    turns.sort(key=lambda turn: turn[0].wall / turn[1].wall)
    whole, bare = turns[len(turns) // 2]
    return {
        "rows": arguments.rows,
        "dim": arguments.dim,
        "classes": arguments.classes,
        "product_seconds": bare.wall,
        "product_cpu_seconds": bare.processor,
        "metrics_seconds": whole.wall,
        "metrics_cpu_seconds": whole.processor,
        "ratio": whole.wall / bare.wall,
        "cpu_ratio": whole.processor / bare.processor,
        "peak_memory_before": peak_before,
        "peak_memory": peak,
        **values,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=4_000)
    parser.add_argument("--noise", type=float, default=2.5)
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report = measure(arguments)
    if arguments.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        if name.startswith("peak"):
            print(f"{name:24} {value / 2**30:10.2f} GiB")
        else:
            print(f"{name:24} {value:10.4g}")


if __name__ == "__main__":
    main()
