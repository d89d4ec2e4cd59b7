"""Retrieval metrics against pytorch-metric-learning's, side by side.

Run `python benchmarks/retrieval_peer.py --peer-python PATH`, where PATH is the
Python of an environment with `pytorch-metric-learning` and `faiss-cpu`. Both
sides get the same embeddings from one file, take turns in processes of their
own on the same cores, and must find the same numbers to 1e-6. Reading the file
and importing libraries is not timed.

The peer is asked twice. For the four metrics that both have it needs its
default `k`, the whole gallery, since a mean reciprocal rank does; that is the
comparison. Without that metric `k="max_bin_count"` is enough for it, and is
timed beside; our time is that of all metrics both times. On a machine that
does other work too, processor times say more than wall times.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# The peer's names on the left, ours on the right.
NAMES = {
    "precision_at_1": "recall@1",
    "r_precision": "r_precision",
    "mean_average_precision_at_r": "map@r",
    "mean_reciprocal_rank": "mrr",
}
CLUSTER_NAMES = {"NMI": "nmi", "AMI": "ami"}
TOLERANCE = 1e-6


def make_embeddings(arguments):
    """Unit rows around one random direction for each class."""
    generator = np.random.default_rng(arguments.seed)
    labels = generator.permutation(
        np.arange(arguments.rows) % arguments.classes
    )
    shape = (arguments.rows, arguments.dim)
    embeddings = arguments.noise * generator.standard_normal(shape)
    embeddings += generator.standard_normal((arguments.classes, arguments.dim))[
        labels
    ]
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings.astype(np.float32), labels


def timed(function):
    wall, processor = time.perf_counter(), time.process_time()
    metrics = function()
    return {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - processor,
        "metrics": metrics,
    }


def our_side(embeddings, labels):
    from keras_dml.evaluation import evaluate_retrieval

    return timed(lambda: evaluate_retrieval(embeddings, labels).metrics)


def peer_side(embeddings, labels):
    import faiss
    import torch
    from pytorch_metric_learning.utils.accuracy_calculator import (
        AccuracyCalculator,
    )

    faiss.omp_set_num_threads(torch.get_num_threads())
    rows, classes = torch.from_numpy(embeddings), torch.from_numpy(labels)

    def measure(names, k):
        calculator = AccuracyCalculator(
            include=names, k=k, device=torch.device("cpu")
        )
        return timed(lambda: calculator.get_accuracy(rows, classes))

    shortest = measure(tuple(NAMES)[:-1], "max_bin_count")
    return {**measure(tuple(NAMES), None), "shortest": shortest}


def our_clusters(labels, clusters):
    from keras_dml.evaluation import (
        adjusted_mutual_information,
        normalized_mutual_information,
    )

    return {
        "nmi": normalized_mutual_information(labels, clusters),
        "ami": adjusted_mutual_information(labels, clusters),
    }


def peer_clusters(labels, clusters):
    from pytorch_metric_learning.utils.accuracy_calculator import (
        AccuracyCalculator,
    )

    calculator = AccuracyCalculator()
    return {
        "NMI": calculator.calculate_NMI(labels, clusters),
        "AMI": calculator.calculate_AMI(labels, clusters),
    }


def run_side(side, path):
    """One side in this process; prints one line of JSON."""
    with np.load(path) as file:
        embeddings, labels = file["embeddings"], file["labels"]
        clusters = file["clusters"]
    if side == "ours":
        report = our_side(embeddings, labels)
        report["clusters"] = our_clusters(labels, clusters)
    else:
        report = peer_side(embeddings, labels)
        report["clusters"] = peer_clusters(labels, clusters)
    print(json.dumps(report))


def ask(python, side, path):
    command = [python, __file__, "--side", side, "--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def largest_difference(ours, peer):
    pairs = [
        (peer["metrics"][theirs], ours["metrics"][name])
        for theirs, name in NAMES.items()
    ] + [
        (peer["clusters"][theirs], ours["clusters"][name])
        for theirs, name in CLUSTER_NAMES.items()
    ]
    return max(abs(a - b) for a, b in pairs)


def compare(arguments):
    embeddings, labels = make_embeddings(arguments)
    generator = np.random.default_rng(arguments.seed + 1)
    # Clusters that agree with the classes in half of the rows.
    clusters = np.where(
        generator.random(len(labels)) < 0.5,
        labels,
        generator.integers(arguments.classes, size=len(labels)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.npz"
        np.savez(path, embeddings=embeddings, labels=labels, clusters=clusters)
        ours = ask(sys.executable, "ours", path)
        peer = ask(arguments.peer_python, "peer", path)
    report = {
        "rows": arguments.rows,
        "dim": arguments.dim,
        "classes": arguments.classes,
        "largest_difference": largest_difference(ours, peer),
    }
    for name, of_peer in (("", peer), ("shortest_", peer["shortest"])):
        for clock in ("seconds", "cpu_seconds"):
            report[f"{name}peer_{clock}"] = of_peer[clock]
            report[f"{name}ratio_{clock}"] = of_peer[clock] / ours[clock]
    for clock in ("seconds", "cpu_seconds"):
        report[f"our_{clock}"] = ours[clock]
    return {**report, **ours["metrics"], **ours["clusters"]}


def main():
    """Exits with 1 where the two sides disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--noise", type=float, default=2.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer-python", metavar="PATH")
    parser.add_argument("--side", choices=["ours", "peer"])
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.file)
        return
    if not arguments.peer_python:
        parser.error(
            "--peer-python must be the Python of an environment with "
            "pytorch-metric-learning and faiss-cpu."
        )
    report = compare(arguments)
    for name, value in report.items():
        print(f"{name:28} {value:10.6g}")
    if report["largest_difference"] > TOLERANCE:
        sys.exit("The two sides disagree.")


if __name__ == "__main__":
    main()
