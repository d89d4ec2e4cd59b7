"""A stand-in for a training: real files, real signals, no network.

Called as `python training_script.py RUN SETTINGS`; SETTINGS is JSON:
`peak`, `epochs`, `pause`, `code` (exits with it after the first epoch),
`column`. It goes on from `history.csv`, as a training does.
"""

import csv
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path


def main(folder, settings):
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    with open(folder / "checkpoints" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        train(folder, settings)


def train(folder, settings):
    if settings["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    (folder / "config.yaml").touch()
    history = folder / "history.csv"
    columns = ["stage", "phase", "epoch", settings["column"], "seconds"]
    rows = []
    if history.exists():
        with open(history, newline="") as file:
            rows = list(csv.DictReader(file))
    note(folder, "starts")
    for epoch in range(len(rows), settings["epochs"]):
        time.sleep(settings["pause"])
        # An epoch is noted and saved, or neither.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        note(folder, "epochs", epoch)
        value = settings["peak"] * (1 - 0.5 ** (epoch + 1))
        row = ["main", "train", epoch, value, 0.5]
        rows.append(dict(zip(columns, row, strict=True)))
        with open(folder / "new.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(folder / "new.csv", history)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if settings["code"]:
            print("Error: the loss is not finite.", file=sys.stderr)
            sys.exit(settings["code"])
    (folder / "metrics.json").write_text("{}")


def note(folder, name, text=""):
    with open(folder / f"{name}.txt", "a") as file:
        file.write(f"{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
