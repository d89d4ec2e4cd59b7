"""Where the time of `keras-dml fit` goes, part by part, as a whole process."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What grows with the length of a training.
TRAINING = ("steps", "validation")


def main() -> None:
    """Prints the seconds of each part, and their sum without training."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Other options are those of `fit`."
    )
    parser.add_argument("folder", help="photos, one sub-folder per class")
    parser.add_argument("--epochs", default="1")
    arguments, others = parser.parse_known_args()
    program = Path(sys.executable).parent / "keras-dml"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run"
        started = time.perf_counter()
        subprocess.run(
            [
                *(program, "fit", arguments.folder, "--output", output),
                *("--epochs", arguments.epochs, *others),
            ],
            check=True,
            capture_output=True,
        )
        whole = time.perf_counter() - started
        seconds = json.loads((output / "metrics.json").read_text())["seconds"]
    seconds["report and end"] = whole - sum(seconds.values())
    for part, took in seconds.items():
        print(f"{part:16}{took:8.1f}")
    fixed = whole - sum(seconds.get(part, 0.0) for part in TRAINING)
    print(f"{'fixed':16}{fixed:8.1f}\n{'whole':16}{whole:8.1f}")


if __name__ == "__main__":
    main()
