"""What evaluation and search cost as the number of embeddings grows.

Run `python benchmarks/search_costs.py`. Every task runs in a process of its
own, so that its memory is its own: the peak beyond what the process held just
before, which is the embeddings and libraries, and the index to search. All
embeddings are queries and references at once. On a machine that does other
work too, processor times say more than wall times: they add up those of all
cores.
"""

import argparse
import json
import subprocess
import sys

import numpy as np
from exact_evaluation import make_embeddings
from scann_curve import measured

TASKS = ("product", "metrics", "neighbors", "scann_build", "scann_search")


def product(embeddings, block_bytes=2**28):
    """The bare float32 product of all embeddings with all."""
    size = max(1, block_bytes // (4 * len(embeddings)))
    buffer = np.empty((min(size, len(embeddings)), len(embeddings)), "float32")
    for start in range(0, len(embeddings), size):
        block = embeddings[start : start + size]
        np.matmul(block, embeddings.T, out=buffer[: len(block)])


def make_task(task, embeddings, labels, k):
    """A function of nothing, made before the clock runs."""
    if task == "product":
        return lambda: product(embeddings)
    from keras_dml.evaluation import (
        ExactIndex,
        ScannIndex,
        evaluate_retrieval,
    )

    if task == "metrics":
        ks = (1, 10, 100, 1000)
        return lambda: evaluate_retrieval(embeddings, labels, k=ks)
    ids = np.arange(len(embeddings))
    if task == "neighbors":
        return lambda: ExactIndex().build(embeddings).search(embeddings, k, ids)
    # Loads ScaNN.
    ScannIndex().build(embeddings[:100])
    if task == "scann_build":
        return lambda: ScannIndex().build(embeddings)
    index = ScannIndex().build(embeddings)
    return lambda: index.search(embeddings, k, ids)


def run_task(arguments):
    embeddings, labels = make_embeddings(
        arguments.rows[0],
        arguments.dim,
        arguments.rows[0] // arguments.class_size,
        arguments.noise,
        arguments.seed,
    )
    function = make_task(arguments.task, embeddings, labels, arguments.k)
    _, (wall, processor, peak) = measured(function)
    print(
        json.dumps({"seconds": wall, "cpu_seconds": processor, "bytes": peak})
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[10_000, 30_000, 100_000]
    )
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--class-size", type=int, default=5)
    parser.add_argument("--noise", type=float, default=1.5)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        run_task(arguments)
        return
    print(f"{'rows':>8} {'task':14} {'wall s':>9} {'cpu s':>9} {'MiB':>7}")
    for rows in arguments.rows:
        for task in TASKS:
            command = [sys.executable, __file__, "--task", task]
            for name in ("dim", "class_size", "noise", "k", "seed"):
                option = "--" + name.replace("_", "-")
                command += [option, str(getattr(arguments, name))]
            done = subprocess.run(
                [*command, "--rows", str(rows)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            cost = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{rows:8} {task:14} {cost['seconds']:9.2f} "
                f"{cost['cpu_seconds']:9.2f} {cost['bytes'] / 2**20:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
