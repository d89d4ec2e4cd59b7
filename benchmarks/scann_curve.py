"""Recall and speed of `ScannIndex` against exact search.

Run `python benchmarks/scann_curve.py` for 1,000,000 x 128 embeddings: unit
rows around one random direction for each cluster, of which `--noise` says how
far they lie apart, as the length of the noise over that of the center. Queries
are further rows of the same clusters.

Exact search and ScaNN take turns on the same cores, round by round, and a
speed-up is the median of the rounds' ratios of seconds a query. Exact search
answers only some of the queries in each round, and its time a query is taken
for all; the recall is measured on all queries. On a machine that does other
work too, the ratio of processor times says more than that of wall times.

The evaluation of `evaluate_index` then runs with few and with many queries:
what it takes beyond the queries themselves must not grow with them.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from keras_dml.evaluation import (
    ExactIndex,
    ScannIndex,
    ann_recall_at_k,
    evaluate_index,
)

ROWS_PER_BLOCK = 100_000
# Exact search is faster in larger blocks than its default.
EXACT_BLOCK_BYTES = 2**30
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def make_clusters(rows, dim, num_clusters, noise, seed):
    """Unit rows and their clusters, made a block at a time."""
    generator = np.random.default_rng(seed)
    shape = (num_clusters, dim)
    centers = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    labels = generator.integers(num_clusters, size=rows)
    embeddings = np.empty((rows, dim), np.float32)
    for start in range(0, rows, ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        part = generator.standard_normal(
            embeddings[block].shape, dtype=np.float32
        )
        part *= noise
        part += centers[labels[block]]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        embeddings[block] = part
    return embeddings, labels


def memory(field):
    """`VmRSS`, the resident bytes, or `VmHWM`, their peak; Linux only."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise ValueError(field)


def measured(function):
    """Wall seconds, processor seconds and bytes at the peak of a call."""
    CLEAR.write_text("5")
    before = memory("VmRSS")
    wall, processor = time.perf_counter(), time.process_time()
    result = function()
    times = time.perf_counter() - wall, time.process_time() - processor
    return result, (*times, memory("VmHWM") - before)


def folder_bytes(index):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        index.save(path)
        return sum(
            file.stat().st_size for file in path.rglob("*") if file.is_file()
        )


def build(arguments, shape, report):
    """Both indexes of the same references, and the clusters of these."""
    references, labels = make_clusters(arguments.rows, *shape, arguments.seed)
    before = memory("VmRSS")
    index, times = measured(
        lambda: ScannIndex(num_leaves=arguments.num_leaves).build(references)
    )
    report["trained"] = str(index.trained_shape)
    report["index_bytes"] = memory("VmRSS") - before
    report["build_seconds"], report["build_cpu_seconds"] = times[:2]
    report["build_peak_bytes"] = times[2]
    report["saved_bytes"] = folder_bytes(index)
    exact = ExactIndex(block_bytes=EXACT_BLOCK_BYTES).build(references)
    return index, exact, labels


def curve(arguments, index, exact, queries):
    """One point for each number of leaves."""
    points = []
    few = queries[: arguments.exact_queries]
    k = arguments.k
    for leaves in arguments.leaves:
        index.leaves_to_search = leaves
        rounds = []
        for _ in range(arguments.rounds):
            _, exact_times = measured(lambda: exact.search(few, k))
            _, times = measured(lambda: index.search(queries, k))
            rounds.append(
                (
                    [seconds / len(few) for seconds in exact_times[:2]],
                    [seconds / len(queries) for seconds in times[:2]],
                )
            )
        points.append(
            {
                "leaves": leaves,
                "recall": ann_recall_at_k(index, queries, k, exact),
                "exact_us": median(rounds, lambda a, b: 1e6 * a[0]),
                "exact_cpu_us": median(rounds, lambda a, b: 1e6 * a[1]),
                "scann_us": median(rounds, lambda a, b: 1e6 * b[0]),
                "scann_cpu_us": median(rounds, lambda a, b: 1e6 * b[1]),
                "speedup": median(rounds, lambda a, b: a[0] / b[0]),
                "cpu_speedup": median(rounds, lambda a, b: a[1] / b[1]),
            }
        )
        print(json.dumps(points[-1]), flush=True)
    return points


def median(rounds, value):
    return statistics.median(value(*turn) for turn in rounds)


def evaluation_memory(arguments, index, exact, labels, num_clusters):
    """Peak bytes of an evaluation by its number of queries."""
    report = {}
    index.leaves_to_search = None
    for count in arguments.memory_queries:
        queries, asked = make_clusters(
            count, arguments.dim, num_clusters, arguments.noise, seed=3
        )
        found, (_, _, peak) = measured(
            lambda queries=queries, asked=asked: evaluate_index(
                index, queries, asked, labels, k=(1, arguments.k), exact=exact
            )
        )
        report[f"peak_bytes_of_{count}_queries"] = peak
    report |= {f"exact_{name}": v for name, v in found.exact_metrics.items()}
    report |= {f"{name}_difference": v for name, v in found.differences.items()}
    return report | found.ann_recall


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--cluster-size", type=int, default=50)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--queries", type=int, default=4_000)
    parser.add_argument("--exact-queries", type=int, default=268)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--num-leaves", type=int)
    parser.add_argument(
        "--leaves", type=int, nargs="+", default=[5, 10, 20, 50, 100, 200]
    )
    parser.add_argument(
        "--memory-queries", type=int, nargs="*", default=[2_048, 8_192]
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    num_clusters = max(1, arguments.rows // arguments.cluster_size)
    shape = arguments.dim, num_clusters, arguments.noise
    queries, _ = make_clusters(arguments.queries, *shape, arguments.seed + 1)
    # Loads ScaNN, whose time and memory are not the index's.
    ScannIndex().build(queries[:100])
    report = {"rows": arguments.rows, "dim": arguments.dim}
    report["noise"] = arguments.noise
    index, exact, labels = build(arguments, shape, report)
    curve(arguments, index, exact, queries)
    report |= evaluation_memory(arguments, index, exact, labels, num_clusters)
    for name, value in report.items():
        if name.endswith("bytes") or "_bytes_" in name:
            value = f"{value / 2**20:.1f} MiB"
        print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
