"""One worker of a small training: `python -m tests.distribute.worker fit ...`.

The command line itself runs, with real settings but without the export and the
page, which take longer than the training.
"""

import os
import signal
import sys

from keras_dml.cli import app
from keras_dml.run.recorder import RunRecorder

EPOCHS = 3
STEPS = 4
# Divides by 2 and by 3 in groups of 4 images of a class.
CLASSES = 6
SIGNAL = "KERAS_DML_TEST_SIGNAL"


def overrides(rate: float = 1e-3) -> list[str]:
    """Settings that suit any number of workers.

    Plain descent in small steps: Adam makes a whole step of a gradient that
    is zero but for rounding, and large steps let a rounding error grow to a
    hundredth within twelve of them, on one device too.
    """
    constant = [
        f"optimizer.{group}={{name: sgd, lr: {rate}, schedule: constant, "
        "warmup_steps: 0}"
        for group in ("backbone", "head", "proxies")
    ]
    return [
        f"stages=[{{phases: [{{epochs: {EPOCHS}}}]}}]",
        f"sampling={{kind: balanced, batch_size: {4 * CLASSES}, "
        f"classes: {CLASSES}, images: 4, steps_per_epoch: {STEPS}}}",
        "model.dim=16",
        "evaluation.every=1",
        *constant,
    ]


def arguments(
    recipe: str, rate: float = 1e-3, source: str = "digits"
) -> list[str]:
    """The command's arguments but the folder."""
    listed = [f"--set={setting}" for setting in overrides(rate)]
    options = ["--recipe", recipe, "--backbone", "small_cnn", "--resume"]
    without = ["--no-export", "--no-report"]
    return ["fit", source, *without, *options, *listed]


def signal_itself(name: str, epoch: int, step: int) -> None:
    """Sends this process a signal at the start of a step, as others might."""

    def on_train_batch_begin(self, batch, logs=None):
        if (self.state.epoch, batch) == (epoch, step):
            os.kill(os.getpid(), getattr(signal, name))

    RunRecorder.on_train_batch_begin = on_train_batch_begin


def main() -> None:
    """Runs the command line."""
    if SIGNAL in os.environ:
        name, epoch, step = os.environ[SIGNAL].split()
        signal_itself(name, int(epoch), int(step))
    sys.argv[0] = "keras-dml"
    app.main()


if __name__ == "__main__":
    main()
