"""Draws the terminal of a short `keras-dml fit` on photos, as `fit.svg`.

    python -m docs.figures.fit_terminal PHOTOS WEIGHTS

PHOTOS has one folder a class; 30 photos of 24 classes are taken. WEIGHTS are
those of MobileNetV2. It takes a few minutes, in the root of a checkout.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.terminal import Terminal, visible

EACH, EVERY, CLASSES = 30, 3, 24
WIDTH = 80
# In lines, as a person would write them.
COMMAND = (
    ("fit", "groceries", "--backbone", "mobilenet_v2", "--epochs", "4"),
    ("--weights", "mobilenet.weights.h5", "--set", "sampling.batch_size=64"),
    ("--set", "sampling.steps_per_epoch=10"),
)


def session(photos: Path, weights: Path) -> str:
    """Trains on some of the photos; returns what the terminal shows."""
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(photos.iterdir())[::EVERY][:CLASSES]:
            copied = Path(folder, "groceries", source.name)
            copied.mkdir(parents=True)
            for photo in sorted(source.iterdir())[:EACH]:
                shutil.copyfile(photo, copied / photo.name)
        shutil.copyfile(weights, Path(folder, "mobilenet.weights.h5"))
        words = [word for line in COMMAND for word in line]
        shown = visible(Terminal(*words, cwd=folder).read())
    command = " \\\n    ".join(" ".join(line) for line in COMMAND)
    return f"$ keras-dml {command}\n{shown}"


def draw(text: str, path: Path) -> None:
    """Writes the text as the picture of a terminal, which cuts long lines."""
    lines = [
        line[start : start + WIDTH]
        for line in text.rstrip().splitlines()
        for start in range(0, max(len(line), 1), WIDTH)
    ]
    console = Console(record=True, width=WIDTH, file=sys.stderr)
    console.print("\n".join(lines), markup=False, highlight=False)
    console.save_svg(str(path), title="keras-dml fit", unique_id="fit")


if __name__ == "__main__":
    draw(session(*map(Path, sys.argv[1:])), Path(__file__).with_name("fit.svg"))
