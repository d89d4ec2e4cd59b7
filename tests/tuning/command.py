"""A tuning with stand-ins for trainings, in this process or its own.

`python -m tests.tuning.command FOLDER SECTION OPTIONS`, both in
JSON.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

from keras_dml.config import resolve
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.tuning.loop import tune

SCRIPT = Path(__file__).with_name("training_script.py")
TPE = {
    "kind": "tpe",
    "trials": 6,
    "seed": 3,
    "prune": False,
    "space": {
        "optimizer.backbone.lr": {"low": 1e-4, "high": 1e-1, "log": True},
        "model.dim": {"low": 64, "high": 512, "step": 64},
    },
}
GRID = {
    "kind": "grid",
    "space": {"model.scale": [4.0, 8.0, 16.0], "model.dim": [64, 128]},
}


def make_config(changes, number):
    overrides = [f"{key}={json.dumps(x)}" for key, x in changes.items()]
    return resolve("norm_softmax", "omniglot", overrides=overrides)


def peak(config):
    """The value that a stand-in converges to: best at a rate of 0.01."""
    rate = config.optimizer.backbone.lr
    return 0.9 - 0.2 * abs(math.log10(rate) + 2) - config.model.dim / 1e4


def starter(epochs=2, pause=0.0, peak=peak, code=lambda config: 0, **settings):
    """A `start` that starts stand-ins."""

    def start_run(config, folder, log, threads):
        given = {
            "column": "val_map@r",
            "stubborn": False,
            **settings,
            "epochs": epochs,
            "pause": pause,
            "peak": peak(config),
            "code": code(config),
        }
        with open(log, "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-S", SCRIPT, folder, json.dumps(given)],
                stdout=output,
                stderr=output,
            )

    return start_run


def search(folder, section, *, start=None, **options):
    """Tunes quickly."""
    return tune(
        TuningConfig.model_validate(section),
        make_config,
        folder,
        start=start or starter(),
        poll=0.02,
        **options,
    )


if __name__ == "__main__":
    folder, section, options = sys.argv[1:]
    search(
        Path(folder),
        json.loads(section),
        start=starter(**json.loads(options)),
    )
