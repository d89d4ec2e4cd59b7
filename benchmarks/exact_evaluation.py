"""Exact retrieval metrics against the bare matrix product they rest on.

Run `python benchmarks/exact_evaluation.py --rows 60502 --classes 11316` for
the size of Stanford Online Products' test set. Both times come from one run
on the same cores. On a machine that does other work too, the ratio of the
processor times says more than that of the wall times.
"""

import argparse
import json
import resource
import sys
import time

import numpy as np

from keras_dml.evaluation import ExactIndex, evaluate_retrieval

BLOCK_BYTES = 2**28


def make_embeddings(rows, dim, classes, noise, seed):
    """Unit rows around one random direction for each class."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(rows) % classes)
    centres = generator.standard_normal((classes, dim), dtype=np.float32)
    embeddings = noise * generator.standard_normal(
        (rows, dim), dtype=np.float32
    )
    embeddings += centres[labels]
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings, labels


def timed(function, *arguments):
    """Returns wall seconds, processor seconds and the result of a call."""
    wall, processor = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return (
        time.perf_counter() - wall,
        time.process_time() - processor,
        result,
    )


def product(embeddings, block_rows):
    """The whole product, `block_rows` queries at a time."""
    block_rows = min(block_rows, len(embeddings))
    buffer = np.empty((block_rows, len(embeddings)), np.float32)
    for start in range(0, len(embeddings), block_rows):
        block = embeddings[start : start + block_rows]
        np.matmul(block, embeddings.T, out=buffer[: len(block)])


def metrics(embeddings, labels, k):
    return evaluate_retrieval(embeddings, labels, k=k).metrics


def search(embeddings, k):
    return ExactIndex().build(embeddings).search(embeddings, k)


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
    block_rows = max(1, BLOCK_BYTES // (4 * arguments.rows))
    peak_before = peak_memory()
    runs = []
    for _ in range(arguments.repeats):
        bare = timed(product, embeddings, block_rows)
        whole = timed(metrics, embeddings, labels, arguments.k)
        runs.append((bare, whole))
    runs.sort(key=lambda run: run[1][0] / run[0][0])
    bare, whole = runs[len(runs) // 2]
    report = {
        "rows": arguments.rows,
        "dim": arguments.dim,
        "classes": arguments.classes,
        "product_seconds": bare[0],
        "product_cpu_seconds": bare[1],
        "metrics_seconds": whole[0],
        "metrics_cpu_seconds": whole[1],
        "ratio": whole[0] / bare[0],
        "cpu_ratio": whole[1] / bare[1],
        "peak_memory_before": peak_before,
        "peak_memory": peak_memory(),
        **whole[2],
    }
    if arguments.whole:
        report["whole_product_seconds"] = timed(
            product, embeddings, arguments.rows
        )[0]
    if arguments.search:
        report["search_k"] = arguments.search
        report["search_seconds"] = timed(search, embeddings, arguments.search)[
            0
        ]
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=4_000)
    parser.add_argument("--noise", type=float, default=2.5)
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--search", type=int, default=0, metavar="K")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--whole",
        action="store_true",
        help="time the product in one piece too; needs 4 * rows^2 bytes",
    )
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
