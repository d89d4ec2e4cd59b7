"""Runs the benchmarks that `make bench` stands for, one after the other.

Each compares two things side by side in one process and prints their ratio:
absolute times say more about the machine than about the code.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
BENCHMARKS = [
    ["startup.py"],
    ["overhead.py"],
    ["input_pipeline.py"],
    ["exact_evaluation.py"],
]


def main() -> int:
    """The number of benchmarks that failed."""
    failed = 0
    for name, *arguments in BENCHMARKS:
        print(f"\n== {name} {' '.join(arguments)}", flush=True)
        done = subprocess.run([sys.executable, FOLDER / name, *arguments])
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
