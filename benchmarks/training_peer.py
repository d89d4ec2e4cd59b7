"""Fine-tuning against pytorch-metric-learning: the same network and photos.

    python benchmarks/training_peer.py --data FOLDER --weights FILE \\
        [--peer-python PATH] [--parts agreement speed quality]

FOLDER has one sub-folder of photos per class; FILE holds the weights of
`keras.applications.MobileNetV2` without its top. The peer is an environment
with `torch==2.13.0` and `pytorch-metric-learning==2.9.0`, by default this one.

- agreement: MobileNetV2 rebuilt in PyTorch computes the same features.
- speed: images per second of training at the side and batch of our default
  recipe, batch normalization frozen, Adam. Ours from files, as `fit` trains,
  against a bare Keras step on photos in memory and against the peer's, from
  files and in memory. The sides take turns; medians over the rounds.
- quality: `keras_dml.fit` for some minutes; then the peer trains for as long
  as our whole command took, once with each of `--losses`, on the same
  training classes. Our exact evaluation measures both on the other classes.
  MultiSimilarityLoss draws four images a class, so 16 classes must train.

On a machine that does other work, set OMP_WAIT_POLICY=PASSIVE: PyTorch's
threads that wait for each other would take the time of the others.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from peers.sides import Side

TOLERANCE = 1e-5
LOSSES = ("NormalizedSoftmaxLoss", "ProxyAnchorLoss", "MultiSimilarityLoss")
METRICS = ("recall@1", "map@r")
# Least images per second of ours over theirs.
TARGETS = {"bare": 0.95, "peer_files": 1.5}


def open_sides(case, arguments):
    """Our process and the peer's, which starts when the case is written."""
    threads = len(os.sched_getaffinity(0))
    ours = Side(
        sys.executable,
        "training_keras_dml.py",
        case,
        threads,
        KERAS_BACKEND="tensorflow",
    )
    peer_python = arguments.peer_python
    return ours, lambda: Side(peer_python, "training_torch.py", case, threads)


def measure_speed(ours, peer, rounds):
    """Images per second by side, and ours from files over each."""
    sides = {
        "ours": (ours, "files"),
        "bare": (ours, "bare"),
        "peer_files": (peer, "files"),
        "peer_memory": (peer, "memory"),
    }
    rates = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (side, source) in sides.items():
            rates[name].append(side.ask("rate", source))
    report = {name: statistics.median(found) for name, found in rates.items()}
    for name in list(sides)[1:]:
        # Other work on the machine meets the sides of one round alike.
        report[f"ours/{name}"] = statistics.median(
            a / b for a, b in zip(rates["ours"], rates[name], strict=True)
        )
    return report


def measure_quality(case, arguments):
    """Metrics on unseen classes: ours, and the peer's with each loss."""
    started = time.perf_counter()
    ours, start_peer = open_sides(case, arguments)
    with ours:
        metrics = ours.ask(
            "fit",
            arguments.data,
            weights=arguments.weights,
            seed=arguments.seed,
            minutes=arguments.minutes,
            output=str(case.parent / "run"),
        )
        seconds = time.perf_counter() - started
        report = {
            "seconds": seconds,
            "features": {name: metrics["pretrained"][name] for name in METRICS},
            "ours": {name: metrics["after"][name] for name in METRICS},
        }
        for loss in arguments.losses:
            with start_peer() as peer:
                steps = peer.ask("train", loss, seconds)
            found = ours.ask("evaluate", f"{case}.{loss}.npy")
            report[loss] = {"steps": steps}
            report[loss] |= {name: found[name] for name in METRICS}
    return report


def measure(arguments):
    report = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as on:
        case = Path(folder) / "case.npz"
        ours, start_peer = open_sides(case, arguments)
        on.enter_context(ours)
        report["case"] = ours.ask(
            "prepare",
            arguments.data,
            weights=arguments.weights,
            seed=arguments.seed,
        )
        with start_peer() as peer:
            report["difference"] = peer.ask("difference")
            if "speed" in arguments.parts:
                report["speed"] = measure_speed(ours, peer, arguments.rounds)
        on.close()
        if "quality" in arguments.parts:
            report["quality"] = measure_quality(case, arguments)
    return report


def show(report):
    print(
        f"largest relative difference of a feature {report['difference']:.1e}"
    )
    for name, value in report.get("speed", {}).items():
        wanted = TARGETS.get(name.removeprefix("ours/"))
        if "/" not in name:
            print(f"{name:18} {value:7.1f} images/s")
        elif wanted:
            print(f"{name:18} {value:7.2f} (target {wanted})")
        else:
            print(f"{name:18} {value:7.2f}")
    if "quality" not in report:
        return
    rows = dict(report["quality"])
    print(f"\nevery training {rows.pop('seconds'):.0f} s")
    for name, row in rows.items():
        steps = f"  {row['steps']} steps" if "steps" in row else ""
        values = "".join(f"  {metric} {row[metric]:.3f}" for metric in METRICS)
        print(f"{name:22}{values}{steps}")
    for metric in METRICS:
        best = max(rows.keys() & {*LOSSES}, key=lambda loss: rows[loss][metric])
        ahead = rows["ours"][metric] - rows[best][metric]
        who = "ours" if ahead > 0 else best
        print(f"{metric}: {who} is ahead by {abs(ahead):.3f}")


def main():
    """Exits with 1 if the networks of the two sides differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True, metavar="FOLDER")
    parser.add_argument("--weights", required=True, metavar="FILE")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH")
    parts = ("agreement", "speed", "quality")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report = measure(arguments)
    if arguments.json:
        print(json.dumps(report))
    else:
        show(report)
    if report["difference"] > TOLERANCE:
        sys.exit("The networks of the two sides differ.")


if __name__ == "__main__":
    main()
