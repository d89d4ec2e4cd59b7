"""Draws the formulas of the losses, with matplotlib alone."""

import html
from pathlib import Path

import yaml
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

FORMULAS = yaml.safe_load(
    Path(__file__).with_name("formulas.yaml").read_text(encoding="utf-8")
)
_SIZE = 17.0
# What SVG calls the codes of matplotlib's paths.
_COMMANDS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}


def formula(key: str) -> str:
    """Returns the formula of a loss as HTML, or `""` if there is none."""
    lines = FORMULAS.get(key, ())
    drawn = "".join(map(as_svg, lines))
    return f'<div class="formula">{drawn}</div>' if drawn else ""


def as_svg(latex: str) -> str:
    """Returns LaTeX as a drawing in the color of the text around it.

    Raises:
        ValueError: If matplotlib does not know a word.
    """
    fonts = FontProperties(math_fontfamily="stix")
    path = TextPath((0, 0), f"${latex}$", size=_SIZE, prop=fonts)
    box = path.get_extents().padded(1)
    words = [
        _COMMANDS[int(code)]
        + ("" if code == path.CLOSEPOLY else _numbers(places))
        for places, code in path.iter_segments(simplify=False)
    ]
    return (
        f'<svg role="img" aria-label="{html.escape(latex)}" '
        f'width="{box.width:.0f}" height="{box.height:.0f}" viewBox="'
        f"{_numbers((box.x0, -box.y1, box.width, box.height))}"
        f'"><path transform="scale(1 -1)" d="{"".join(words)}"/></svg>'
    )


def _numbers(values):
    return " ".join(f"{value:.1f}" for value in values)
