"""What the figures share: their arguments, and how a picture is written."""

import argparse
import io
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image


def parse(description, argv=None, seeds=None, data=False, parts=()):
    """The arguments of a figure.

    Args:
        description: String, the first line of `--help`.
        argv: List of strings. Defaults to `None`: those of the process.
        seeds: Integer, over how many seeds numbers are averaged. Defaults to
            `None`: the figure has one seed.
        data: Boolean, whether it needs the folder of Omniglot. Defaults to
            `False`.
        parts: Names of pictures that `--only` draws. Defaults to none: the
            figure is one picture.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument(
        "--output", default=".", help="folder of the picture (default: here)"
    )
    if data:
        parser.add_argument(
            "--data-dir", required=True, help="folder that holds Omniglot"
        )
    if parts:
        parser.add_argument(
            "--only", nargs="+", choices=parts, help="draw these alone"
        )
    parser.add_argument("--seed", type=int, default=0)
    if seeds is not None:
        parser.add_argument(
            "--seeds",
            type=int,
            default=seeds,
            help=f"how many seeds, from --seed on (default: {seeds})",
        )
    parser.add_argument(
        "--quick", action="store_true", help="train for a few epochs only"
    )
    return parser.parse_args(argv)


def save(figure: Figure, folder, name: str) -> Path:
    """Writes a picture as a PNG of 128 colors, and says where."""
    path = Path(folder) / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    picture = Image.open(buffer).convert("RGB")
    # Without dithering, which looks like noise and does not compress.
    picture = picture.quantize(128, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)
    print(path)
    return path
