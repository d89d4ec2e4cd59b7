"""Runs the benchmarks that `make bench` stands for, one after the other.

Each compares two things side by side and prints their ratio: absolute times
say more about the machine than about the code.
"""

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
BENCHMARKS = [
    ["startup.py"],
    ["overhead.py"],
    ["processor.py"],
    ["input_pipeline.py"],
    ["end_of_iteration.py"],
    ["exact_evaluation.py"],
    ["loss_speed.py"],
    ["loss_costs.py"],
    ["proxy_isa.py"],
    ["sampled_proxies.py"],
    ["distributed.py", "replicas"],
    ["nearest_neighbors.py"],
    ["scann_curve.py"],
    ["search_costs.py"],
    ["serving.py"],
]
WITH_PEER = ("loss_speed.py", "nearest_neighbors.py")


def main() -> int:
    """The number of benchmarks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--peer-python",
        metavar="PATH",
        help="the Python of the peers' environment, see loss_speed.py",
    )
    peer = parser.parse_args().peer_python
    failed = 0
    for name, *arguments in BENCHMARKS:
        if peer and name in WITH_PEER:
            arguments += ["--peer-python", peer]
        print(f"\n== {name} {' '.join(arguments)}", flush=True)
        done = subprocess.run([sys.executable, FOLDER / name, *arguments])
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
