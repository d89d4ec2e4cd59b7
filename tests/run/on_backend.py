"""Trains and uses a run on the backend of this process, as the commands do.

`python -m tests.run.on_backend PHOTOS FOLDER` prints what came of it as JSON,
for `test_other_backends.py`.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import keras_dml
from keras_dml.errors import PreemptedError
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.recorder import RunRecorder

SETTINGS = {
    "model.dim": 8,
    "sampling.batch_size": 16,
    "sampling.steps_per_epoch": 4,
    "evaluation.k": [1],
    "stages": [
        {
            "phases": [
                {
                    "epochs": 3,
                    "heat": {"epoch": 1, "scale": 4.0, "lr_factor": 0.1},
                }
            ]
        }
    ],
    **{
        f"optimizer.{group}.{key}": value
        for group in ("backbone", "head", "proxies")
        for key, value in (
            ("schedule", "constant"),
            ("warmup_steps", 0),
            ("lr", 1e-3),
        )
    },
}


def train(photos, folder, **options):
    """A training from pretrained features that validates and heats up."""
    return keras_dml.fit(
        photos / "images",
        recipe="norm_softmax",
        backbone="small_cnn",
        weights=photos / "small_cnn.weights.h5",
        output=folder,
        settings=SETTINGS,
        **options,
    )


def results(run):
    """What the same seed gives, as far as backends can agree."""
    return {
        "metrics": {
            name: run.metrics[name]
            for name in ("pretrained", "before", "after", "interpolation")
        },
        "history": {
            name: values.tolist()
            for name, values in run.history.columns.items()
            if name != "seconds"
        },
    }


def stopped_and_resumed(photos, folder):
    """Stops in the middle of the heated epoch, and goes on."""

    def at_step(self, batch, logs=None):
        if (self.state.epoch, batch) == (1, 1):
            os.kill(os.getpid(), signal.SIGTERM)

    RunRecorder.on_train_batch_begin = at_step
    try:
        train(photos, folder, export=False, report=False)
    except PreemptedError as error:
        said = str(error)
    del RunRecorder.on_train_batch_begin
    train(photos, folder, export=False, report=False, resume=True)
    return said


def largest_difference(one, other):
    """Of all variables in the last checkpoints of two runs."""
    first, second = (
        load_checkpoint(folder / "checkpoints" / "last.npz").values
        for folder in (one, other)
    )
    return max(
        float(np.max(np.abs(np.subtract(a, b, dtype=float)), initial=0.0))
        for group in ("model", "optimizer")
        for a, b in zip(first[group], second[group], strict=True)
    )


def main(photos, folder):
    run = train(photos, folder / "whole")
    stopped = stopped_and_resumed(photos, folder / "part")
    again = keras_dml.Run(folder / "whole")
    embedded = again.embed(photos / "images", folder / "vectors.npz")
    query = photos / "images" / "class_00" / "0.jpg"
    found = again.search(query, k=1)
    exported = again.export("saved_model")
    print(
        json.dumps(
            {
                **results(run),
                "backend": run.metrics["versions"]["backend"],
                "files": sorted(one.name for one in run.folder.path.iterdir()),
                "exports": [row["artifact"] for row in exported],
                "cosines": [row["mean_cosine"] for row in exported],
                "stopped": stopped,
                "difference": largest_difference(
                    folder / "whole", folder / "part"
                ),
                "evaluated": again.evaluate(k=(1,)).flat()["map@r"],
                "rows": [embedded.rows, embedded.dim],
                "found": repr(found),
            }
        )
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
