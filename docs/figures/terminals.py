"""Draws what a person sees of a short `fit` and of a `search`.

    python -m docs.figures.terminals PHOTOS WEIGHTS

fit.svg and search.svg are their terminals, report.webp is the top of the run's
page in a browser (see tests/browser.py). PHOTOS has one folder a class; 30
photos of each class are taken. WEIGHTS are those of MobileNetV2. It takes a few
minutes, in the root of a checkout.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console

from tests.browser import photograph
from tests.terminal import Terminal, visible

EACH, EVERY, CLASSES = 30, 1, 81
WIDTH = 80
# The window of the page, and the width of its scroll bar.
PAGE, BAR = (1120, 1240), 16
# In lines, as a person would write them.
FIT = (
    ("fit", "groceries", "--backbone", "mobilenet_v2", "--epochs", "6"),
    ("--weights", "mobilenet.weights.h5", "--set", "sampling.batch_size=64"),
    ("--set", "sampling.steps_per_epoch=25", "--output", "runs/groceries"),
)
SEARCH = (("search", "runs/groceries", "photo.jpg", "--k", "5"),)


def copy_photos(photos: Path, folder: Path) -> None:
    """Copies some of the photos, and another one to search for."""
    for source in sorted(photos.iterdir())[::EVERY][:CLASSES]:
        copied = folder / "groceries" / source.name
        copied.mkdir(parents=True)
        *others, last = sorted(source.iterdir())[: EACH + 1]
        for photo in others:
            shutil.copyfile(photo, copied / photo.name)
    shutil.copyfile(last, folder / "photo.jpg")


def session(lines: tuple[tuple[str, ...], ...], folder: Path) -> str:
    """Returns a command and what the terminal shows of it."""
    words = [word for line in lines for word in line]
    shown = visible(Terminal(*words, cwd=folder).read())
    command = " \\\n    ".join(" ".join(line) for line in lines)
    return f"$ keras-dml {command}\n{shown}"


def draw(text: str, name: str) -> None:
    """Writes the text as the picture of a terminal, which cuts long lines."""
    lines = [
        line[start : start + WIDTH]
        for line in text.rstrip().splitlines()
        for start in range(0, max(len(line), 1), WIDTH)
    ]
    console = Console(record=True, width=WIDTH, file=sys.stderr)
    console.print("\n".join(lines), markup=False, highlight=False)
    path = Path(__file__).with_name(f"{name}.svg")
    console.save_svg(str(path), title=f"keras-dml {name}", unique_id=name)


def draw_all(photos: Path, weights: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_photos(photos, folder)
        shutil.copyfile(weights, folder / "mobilenet.weights.h5")
        for name, lines in (("fit", FIT), ("search", SEARCH)):
            draw(session(lines, folder), name)
        (folder / "browser").mkdir()
        page = folder / "runs" / "groceries" / "report.html"
        with Image.open(photograph(page, folder / "browser", PAGE)) as picture:
            shown = picture.crop((0, 0, PAGE[0] - BAR, PAGE[1]))
            shown.convert("RGB").save(
                Path(__file__).with_name("report.webp"), quality=80
            )


if __name__ == "__main__":
    draw_all(*map(Path, sys.argv[1:]))
