"""Losses, forward and backward, against pytorch-metric-learning's.

Run `python benchmarks/loss_speed.py --peer-python PATH` with the Python of an
environment that has `torch==2.13.0` and `pytorch-metric-learning==2.9.0`;
without it there are our times and those of the bare products only. Gradients
are those of the embeddings and, where there are any, of the proxies. With
`--gpu` our losses run under JAX and PyTorch, and nothing needs TensorFlow.

Both sides are processes of their own on the same cores, with the same inputs,
and must find the same loss and gradients. They take turns, and one waits while
the other runs, so that other work on the machine meets both. A time is the
median over the rounds of the fastest call of a round: the fastest call is the
least disturbed one, and the median does not hang on a lucky round.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np
from peers.sides import Side

# The backend of our side for each mode; the peer has none.
ON_PROCESSORS = {
    "xla": "tensorflow",
    "plain": "tensorflow",
    "floor": "tensorflow",
    "peer": None,
}
ON_GPU = {"jax": "jax", "torch": "torch", "floor": "jax", "peer": None}
DIM = 512
ROWS_OF_CLASS = 4
# Instead of the target: this many times the bare products.
FLOOR_LIMIT = 1.3


class Case(NamedTuple):
    """What is timed, and how many times faster than the peer it should be."""

    rows: int
    classes: int = 0
    centers: int = 1
    target: float = 2.0
    # What of loss and gradients the peer does not compute the same.
    differs: bool = False
    dim: int = DIM


CASES = {
    "proxy_anchor": Case(180, 11_318, target=3.0),
    "proxynca_pp": Case(180, 11_318, target=3.0),
    "norm_softmax": Case(180, 11_318, target=3.0),
    "soft_triple": Case(180, 1_000, centers=10),
    "arcface": Case(180, 11_318),
    "multi_similarity": Case(512, target=3.0),
    "contrastive": Case(512),
    "contrastive_euclidean": Case(512),
    "triplet": Case(512),
    # Theirs draws other negatives.
    "margin_sampled": Case(512, differs=True),
    # Theirs counts a pair once for each triplet it is in.
    "margin_all": Case(512, differs=True),
    "lifted": Case(128, target=50.0),
    # The others that both have, at a batch that theirs can do.
    "angular": Case(256),
    "circle": Case(256, differs=True),
    "dynamic_soft_margin": Case(256, differs=True),
    "fast_ap": Case(256),
    "generalized_lifted": Case(256),
    "histogram": Case(256),
    "instance": Case(256),
    "intra_pair_variance": Case(256),
    "n_pair": Case(256),
    "nca": Case(256),
    "nt_xent": Case(256),
    # Theirs counts the row itself as one of its positives.
    "pnp": Case(256, differs=True),
    # The negatives of a row far away have weight one there.
    "ranked_list": Case(256, differs=True),
    "signal_to_noise": Case(256),
    "smooth_ap": Case(256, differs=True),
    "supcon": Case(256),
    "triplet_all": Case(256),
    "tuplet_margin": Case(256),
    "vicreg": Case(256),
    "cosface": Case(180, 1_000),
    "large_margin_softmax": Case(180, 1_000),
    "manifold": Case(180, 200),
    # Theirs is a mean over classes, too.
    "p2s_grad": Case(180, 1_000, differs=True),
    "sphereface": Case(180, 1_000),
    "sub_center_arcface": Case(180, 1_000, centers=3),
    # With a miner: the contrastive loss, or that of all triplets.
    "miner_angular": Case(512, dim=128),
    "miner_batch_easy_hard": Case(512, dim=128),
    "miner_batch_hard": Case(512, dim=128),
    # The draws are others.
    "miner_distance_weighted": Case(512, dim=128, differs=True),
    "miner_hdc": Case(512, dim=128),
    "miner_multi_similarity": Case(512, dim=128),
    "miner_pair_margin": Case(512, dim=128),
    "miner_triplet_margin": Case(512, dim=128),
    "miner_uniform_histogram": Case(512, dim=128, differs=True),
}


def make_arrays(cases, seed=0):
    """Embeddings near those of their class, labels and proxies, by name."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, case in cases.items():
        present = case.rows // ROWS_OF_CLASS
        labels = np.arange(present)
        if case.classes:
            labels = rng.permutation(case.classes)[:present]
            shape = (case.classes * case.centers, case.dim)
            proxies = rng.standard_normal(shape, "float32") / 8
            arrays[f"{name}/proxies"] = proxies
        x = np.repeat(
            rng.standard_normal((present, case.dim)), ROWS_OF_CLASS, 0
        )
        x += 1.5 * rng.standard_normal(x.shape)
        arrays[f"{name}/x"] = x.astype("float32")
        arrays[f"{name}/labels"] = np.repeat(labels, ROWS_OF_CLASS)
    return arrays


@contextlib.contextmanager
def both_sides(arrays, arguments, **environment):
    """The process that answers for each mode."""
    modes = ON_GPU if arguments.gpu else ON_PROCESSORS
    programs = {
        backend: (sys.executable, "loss_speed_keras_dml.py")
        for backend in modes.values()
        if backend
    }
    if arguments.peer_python:
        programs[None] = arguments.peer_python, "loss_speed_torch.py"
    with contextlib.ExitStack() as stack:
        started = {
            backend: stack.enter_context(
                Side(
                    *program,
                    arrays,
                    arguments.threads,
                    KERAS_BACKEND=backend or "",
                    **environment,
                )
            )
            for backend, program in programs.items()
        }
        yield {
            mode: started[backend]
            for mode, backend in modes.items()
            if backend in started
        }


def ours(modes):
    """The modes in which our losses run."""
    return [mode for mode in modes if mode not in ("floor", "peer")]


def check(name, case, sides):
    """Loss and gradients of all sides must be the same."""
    found = {
        mode: side.ask("check", name, mode)
        for mode, side in sides.items()
        if mode != "floor" and not (mode == "peer" and case.differs)
    }
    for mode, numbers in found.items():
        np.testing.assert_allclose(
            numbers,
            next(iter(found.values())),
            rtol=1e-4,
            atol=1e-6,
            err_msg=f"{name}: {mode}, {next(iter(found))}",
        )


def fastest_call(name, mode, side, arguments):
    """Seconds of the fastest of several calls."""
    # Threads of the other side may still wait for more work.
    time.sleep(0.02)
    times = side.ask("time", name, mode, seconds=arguments.seconds)
    wall, processor = zip(*times[1:], strict=True)
    return min(processor if arguments.processor_time else wall)


def measure_times(name, case, sides, arguments):
    """Milliseconds by mode, and what follows."""
    check(name, case, sides)
    fastest = {mode: [] for mode in sides}
    for _ in range(arguments.rounds):
        for mode, side in sides.items():
            fastest[mode].append(fastest_call(name, mode, side, arguments))
    row = {"loss": name, **case._asdict()}
    for mode, times in fastest.items():
        row[f"{mode}_ms"] = 1e3 * statistics.median(times)
    for mode in ours(sides):
        over_floor = row[f"{mode}_ms"] / row["floor_ms"]
        row[f"{mode}_over_floor"] = over_floor
        row[f"{mode}_met"] = bool(over_floor <= FLOOR_LIMIT)
        if "peer" in sides:
            speedup = row["peer_ms"] / row[f"{mode}_ms"]
            row[f"{mode}_speedup"] = speedup
            row[f"{mode}_met"] |= bool(speedup >= case.target)
    return row


def measure_memory(name, case, sides):
    """Bytes that a step holds at most beyond its inputs, by mode."""
    row = {"loss": name, **case._asdict()}
    for mode, side in sides.items():
        row[f"{mode}_bytes"] = side.ask("memory", name, mode)
    columns = case.classes * case.centers or case.rows
    row["matrix_bytes"] = 4 * case.rows * columns
    row["proxies_bytes"] = 4 * case.dim * case.classes * case.centers
    return row


def print_times(rows):
    modes = ours(name[:-3] for name in rows[0] if name.endswith("_ms"))
    columns = [*modes, "floor", "peer"]
    columns += [f"peer/{mode}" for mode in modes]
    columns += [f"{mode}/floor" for mode in modes]
    print(f"{'milliseconds':24}" + "".join(f"{one:>13}" for one in columns))
    for row in rows:
        numbers = [row.get(f"{one}_ms", np.nan) for one in columns]
        numbers = numbers[: len(modes) + 2]
        numbers += [row.get(f"{mode}_speedup", np.nan) for mode in modes]
        numbers += [row[f"{mode}_over_floor"] for mode in modes]
        met = ["yes" if row[f"{mode}_met"] else "no" for mode in modes]
        print(
            f"{row['loss']:24}"
            + "".join(f"{number:13.2f}" for number in numbers)
            + f"  {row['target']:.0f} times: {', '.join(met)}"
        )


def print_memory(rows):
    modes = [name[:-6] for name in rows[0] if name.endswith("_bytes")]
    print(f"{'MiB':24}" + "".join(f"{mode:>11}" for mode in modes))
    for row in rows:
        sizes = [row[f"{mode}_bytes"] or np.nan for mode in modes]
        print(
            f"{row['loss']:24}"
            + "".join(f"{size / 2**20:11.1f}" for size in sizes)
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", metavar="PATH")
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="under JAX and PyTorch on the GPU that they find, instead of "
        "TensorFlow",
    )
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="of calls in a round"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="compare seconds of the processors, of all threads together: for "
        "a machine that does other work too",
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="measure the peak memory of a step instead; on processors of "
        "Linux, or of PyTorch on a GPU",
    )
    parser.add_argument(
        "--quick", action="store_true", help="try it out on small inputs"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = {name: CASES[name] for name in arguments.only}
    if arguments.quick:
        cases = {
            name: case._replace(rows=24, classes=50 * (case.classes > 0))
            for name, case in cases.items()
        }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "arrays.npz")
        np.savez(path, **make_arrays(cases))
        environment = {}
        if arguments.memory:
            # Freed memory must leave the process to be seen taken again.
            environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
        if arguments.processor_time:
            # Threads of torch that wait for each other shall not count.
            environment["OMP_WAIT_POLICY"] = "PASSIVE"
        with both_sides(path, arguments, **environment) as sides:
            rows = [
                measure_memory(name, case, sides)
                if arguments.memory
                else measure_times(name, case, sides, arguments)
                for name, case in cases.items()
            ]
    if arguments.json:
        print(json.dumps(rows))
    elif arguments.memory:
        print_memory(rows)
    else:
        print_times(rows)


if __name__ == "__main__":
    main()
