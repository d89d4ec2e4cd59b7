"""Lists of the nearest neighbors against faiss-cpu's flat index.

Run `python benchmarks/nearest_neighbors.py --peer-python PATH`, where PATH is
the Python of an environment with `faiss-cpu`. Both sides are processes of
their own with the same embeddings and the same number of threads, and take
turns: one waits while the other builds its index and searches. The bare
float32 product of the same size takes its turns too. A time is the median
over the rounds, and a ratio the median of the rounds' ratios. On a machine
that does other work too, processor times say more than wall times.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIDES = ("ours", "faiss", "product")
PRODUCT_BYTES = 2**28
# Two products of unit rows may differ by this through rounding alone.
TOLERANCE = 1e-6


def make_embeddings(rows, dim, seed):
    """Unit rows in all directions: the neighbors are hard to tell apart."""
    generator = np.random.default_rng(seed)
    embeddings = generator.standard_normal((rows, dim), dtype=np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings


def make_search(side, embeddings, k, threads):
    """A function of nothing that returns ids and scores, or `None`."""
    if side == "faiss":
        import faiss

        faiss.omp_set_num_threads(threads)

        def search():
            index = faiss.IndexFlatIP(embeddings.shape[1])
            index.add(embeddings)
            scores, ids = index.search(embeddings, k)
            return ids, scores

    elif side == "ours":
        from keras_dml.evaluation import ExactIndex

        def search():
            index = ExactIndex("dot").build(embeddings)
            return index.search(embeddings, k)

    else:
        size = max(1, PRODUCT_BYTES // (4 * len(embeddings)))
        buffer = np.zeros((size, len(embeddings)), np.float32)

        def search():
            for start in range(0, len(embeddings), size):
                block = embeddings[start : start + size]
                np.matmul(block, embeddings.T, out=buffer[: len(block)])

    return search


def serve(side, folder, k, threads):
    """One side: a search for each line of input, a line of times for each."""
    embeddings = np.load(folder / "embeddings.npy")
    search = make_search(side, embeddings, k, threads)
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        found = search()
        times = time.perf_counter() - wall, time.process_time() - processor
        if found is not None:
            np.savez(folder / f"{side}.npz", ids=found[0], scores=found[1])
        print(json.dumps(times), flush=True)


class Side:
    """A process that searches when it is asked to."""

    def __init__(self, side, python, folder, arguments):
        count = str(arguments.threads)
        command = [python, __file__, "--side", side, "--folder", folder]
        command += ["--k", str(arguments.k), "--threads", count]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "3",
                **os.environ,
                "OMP_NUM_THREADS": count,
                "OPENBLAS_NUM_THREADS": count,
                # Waiting threads must not take the other side's time.
                "OMP_WAIT_POLICY": "PASSIVE",
            },
        )
        self._answer()

    def search(self):
        """Wall and processor seconds of one search."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self._answer())

    def close(self):
        self.process.communicate()

    def _answer(self):
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("A side ended before it answered.")
        return answer


def compare(arguments):
    pythons = {"ours": sys.executable, "product": sys.executable}
    if arguments.peer_python:
        pythons["faiss"] = arguments.peer_python
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        np.save(
            path / "embeddings.npy",
            make_embeddings(arguments.rows, arguments.dim, arguments.seed),
        )
        sides = {
            side: Side(side, python, folder, arguments)
            for side, python in pythons.items()
        }
        times = {side: [] for side in sides}
        for turn in range(arguments.rounds + 1):
            for side, process in sides.items():
                seconds = process.search()
                # The first turn warms up.
                if turn:
                    times[side].append(seconds)
        for process in sides.values():
            process.close()
        report = {"rows": arguments.rows, "dim": arguments.dim}
        report["k"] = arguments.k
        for number, clock in enumerate(("seconds", "cpu_seconds")):
            medians = {
                side: statistics.median(turn[number] for turn in turns)
                for side, turns in times.items()
            }
            report |= {f"{side}_{clock}": t for side, t in medians.items()}
            for side in set(sides) - {"ours"}:
                ratios = [
                    ours[number] / theirs[number]
                    for ours, theirs in zip(
                        times["ours"], times[side], strict=True
                    )
                ]
                report[f"ours_over_{side}_{clock}"] = statistics.median(ratios)
        if arguments.peer_python:
            report |= agreement(path)
    return report


def agreement(folder):
    """How far the two sides' lists agree."""
    ours, faiss = (np.load(folder / f"{side}.npz") for side in SIDES[:2])
    differences = np.abs(ours["scores"] - faiss["scores"])
    return {
        "same_ids": float((ours["ids"] == faiss["ids"]).mean()),
        "largest_score_difference": float(differences.max()),
    }


def main():
    """Exits with 1 where the two sides disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--k", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer-python", metavar="PATH")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        serve(arguments.side, arguments.folder, arguments.k, arguments.threads)
        return
    report = compare(arguments)
    for name, value in report.items():
        print(f"{name:32} {value:10.6g}")
    if report.get("largest_score_difference", 0.0) > TOLERANCE:
        sys.exit("The two sides disagree.")


if __name__ == "__main__":
    main()
