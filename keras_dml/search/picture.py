"""Draws the answers of a search."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from keras_dml.errors import UsageError
from keras_dml.files import replacing
from keras_dml.plotting import GRAY, NEGATIVE, POSITIVE
from keras_dml.report.thumbnails import Thumbnails
from keras_dml.search.result import SearchResult

INCHES = 1.5
MOST_PIXELS = 256
# More would be no picture: each takes 165 x 225 pixels of it.
MOST_QUERIES, MOST_NEIGHBORS = 100, 50
MAX_LETTERS = 22
# The frame of a neighbor, by whether it reaches the threshold.
EDGES = {None: GRAY, True: POSITIVE, False: NEGATIVE}


def check_picture(path: Path) -> None:
    """Raises if no picture can be written to a path.

    Raises:
        UsageError: If the path is not a .png file in an existing folder.
    """
    if path.suffix.lower() != ".png" or not path.parent.is_dir():
        raise UsageError(
            "`picture` must be a .png file in a folder that exists. "
            f"Received: {str(path)!r}."
        )


def draw_answers(result: SearchResult, path: str | Path) -> None:
    """Draws each query with its neighbors in a row, with their distances.

    Neighbors that reach the threshold have a green frame, and the others a
    dashed red frame. Without a threshold, frames are gray. It shows at most
    100 queries, and 50 neighbors of each.

    Args:
        result: `SearchResult`.
        path: The PNG file to write or replace.

    Raises:
        UsageError: If the images of the gallery are missing, or the picture
            cannot be written.

    Example:

    ```python
    result = search_run("runs/shoes", ["photo.jpg"])
    draw_answers(result, "answer.png")
    ```
    """
    path = Path(path)
    check_picture(path)
    if result.gallery.images is None:
        raise UsageError(
            "`picture` shows images of the gallery, which are no longer where "
            "the run found them. `data_dir` names their folder."
        )
    queries = Thumbnails(result.queries)
    found = Thumbnails(result.gallery.images)
    answers = result.answers[:MOST_QUERIES]
    columns = 1 + max(
        len(answer.neighbors[:MOST_NEIGHBORS]) for answer in answers
    )
    rows = len(answers)
    figure = Figure(
        figsize=(columns * INCHES, rows * (INCHES + 0.55)), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for row, answer in enumerate(answers):
        verdict = "query: no match" if answer.match is False else "query"
        title = f"{verdict}\n{_short(Path(answer.path).name)}"
        _draw(grid[row, 0], queries.pixels(row), title, GRAY)
        shown = answer.neighbors[:MOST_NEIGHBORS]
        for column, one in enumerate(shown, start=1):
            title = f"{one.distance:.3f}\n{_short(one.label)}"
            edge = EDGES[one.accepted]
            _draw(grid[row, column], found.pixels(one.row), title, edge)
            if one.accepted is False:
                for spine in grid[row, column].spines.values():
                    spine.set_linestyle("--")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def _draw(axes, pixels: np.ndarray, title: str, color: str) -> None:
    axes.set_axis_on()
    smooth = "nearest" if max(pixels.shape[:2]) < 64 else "antialiased"
    # As large as it is drawn: photos of a phone would fill the memory.
    image = Image.fromarray(pixels)
    image.thumbnail((MOST_PIXELS, MOST_PIXELS), Image.Resampling.LANCZOS)
    axes.imshow(_square(np.asarray(image)), interpolation=smooth)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=8)
    for spine in axes.spines.values():
        spine.set_color(color)
        spine.set_linewidth(3)


def _square(pixels: np.ndarray) -> np.ndarray:
    """Centers the whole image in a white square."""
    height, width = pixels.shape[:2]
    side = max(height, width)
    top, left = (side - height) // 2, (side - width) // 2
    rows, columns = (top, side - height - top), (left, side - width - left)
    return np.pad(pixels, (rows, columns, (0, 0)), constant_values=255)


def _short(text: str) -> str:
    """Shortens a text to fit above a picture.

    Escapes `$`, which would start a formula.
    """
    text = text.replace("$", r"\$")
    if len(text) <= MAX_LETTERS:
        return text
    return f"{text[: MAX_LETTERS - 1]}…"
