"""How long `keras-dml --help` takes as a whole process (at most 0.5 s)."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    """Prints the median over some runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    program = Path(sys.executable).parent / "keras-dml"
    seconds = []
    for _ in range(arguments.repeats + 1):
        start = time.perf_counter()
        subprocess.run([program, "--help"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    # The first run reads the files from disk.
    result = {
        "median_seconds": statistics.median(seconds[1:]),
        "slowest_seconds": max(seconds[1:]),
        "first_seconds": seconds[0],
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            "keras-dml --help: median {median_seconds:.2f} s, slowest "
            "{slowest_seconds:.2f} s, first {first_seconds:.2f} s".format(
                **result
            )
        )


if __name__ == "__main__":
    main()
