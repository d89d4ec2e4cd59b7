"""The style of all figures, and the files that they are saved to."""

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from keras_dml.files import replacing

# Distinct for people with any color vision (Okabe and Ito).
COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
)
# 5 markers and 7 colors share no factor, so that pairs repeat late.
MARKERS = ("o", "s", "^", "D", "v")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1, 2)))
GRAY = "#57606a"
POSITIVE, NEGATIVE = "#1a7f37", "#b3261e"
_STYLE: Any = {
    "svg.hashsalt": "keras-dml",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GRAY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # Inches around the axes of a figure.
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
}


def styled():
    """Returns the context in which figures are drawn and saved."""
    return matplotlib.rc_context(_STYLE)


def line_style(number: int) -> dict[str, Any]:
    """Returns the color, marker and dashes of a line.

    No two of the first 35 lines have all three in common.

    Args:
        number: Integer, the position of the line.
    """
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number // len(COLORS) % len(DASHES)],
    }


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG, at 150 dots per inch, and as SVG.

    Args:
        figure: The figure.
        path: Path of the files without a suffix.
    """
    png = path.with_name(f"{path.name}.png")
    with styled(), replacing(png) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
    with replacing(path.with_name(f"{path.name}.svg")) as temporary:
        temporary.write_bytes(svg(figure))


def svg(figure: Figure, transparent: bool = False) -> bytes:
    """Returns a figure as SVG; equal figures give equal bytes.

    Args:
        figure: The figure.
        transparent: Whether to leave out the ground, for a page that may be
            dark. Defaults to `False`.
    """
    buffer = io.BytesIO()
    with styled():
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Date": None},
            transparent=transparent,
        )
    return buffer.getvalue()
