"""Glyphs: characters of matplotlib's fonts, tested on unseen scripts."""

import functools
import unicodedata
from pathlib import Path

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import reader
from keras_dml.errors import UsageError

SIDE = 28
IMAGES_PER_CLASS = 20
FEWEST_FONTS = 8
# In this order: of characters that look alike, the first one is kept.
TRAIN_SCRIPTS = ("Latin", "Greek", "Symbols")
TEST_SCRIPTS = ("Cyrillic", "Armenian", "Georgian", "Lao")
SCRIPTS = TRAIN_SCRIPTS + TEST_SCRIPTS
FONTS = (
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique")),
    "DejaVuSans-BoldOblique",
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique")),
    "DejaVuSansMono-BoldOblique",
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic")),
    "DejaVuSerif-BoldItalic",
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
)
# Parts of drawings, and Braille: alike once they are equally large.
_LINES_AND_DOTS = (range(0x2500, 0x25A0), range(0x2800, 0x2900))
# One style of DejaVu draws another letter for each of these.
_MISDRAWN = (0x04CB, 0x04F6, 0x2D1B)

_POINTS = 48
_CANVAS, _ORIGIN = (120, 90), (24, 58)
_INK = 19  # pixels of the longer side of a character, before scaling
_FINER = 2  # characters are drawn finer, and then shrunk
_IS_INK = 96  # the darkest level that is ink where drawings are compared
_FAR = 1  # pixels of ink that are not near the other's in drawings alike
# To either side: radians, a slope, a share, and pixels.
_ROTATION, _SHEAR, _SCALE, _SHIFT = 0.2, 0.2, 0.15, 2.0


@reader(fixed=False)
def read_glyphs(root, facts) -> Manifest:
    """Draws 28 x 28 gray images, bright ink on black, in some seconds.

    A class is a character, drawn 20 times, each time by another of the DejaVu
    and STIX fonts that matplotlib ships, turned, sheared, scaled and moved at
    random. All characters are equally large, so only their shape tells them
    apart. A character is left out if fewer than eight fonts hold it, if it is
    another one with an accent, or if a font draws it like an earlier one: the
    Cyrillic A is left out, because it looks like the Latin one.

    Every process draws the same images with the same version of Pillow.

    Returns:
        `Manifest` of images in memory; `group` is the script. Latin, Greek
        and symbols train; Cyrillic, Armenian, Georgian and Lao test.

    Raises:
        UsageError: If matplotlib lacks the fonts.
    """
    kept, images, ids = _draw()
    group = [_script_number(code) for code in kept]
    tests = np.array(group) >= len(TRAIN_SCRIPTS)
    split = np.where(tests, "test", "train")
    return Manifest(
        name=facts.name,
        labels=np.repeat(np.arange(len(kept)), IMAGES_PER_CLASS),
        class_names=[f"U+{c:04X} {unicodedata.name(chr(c))}" for c in kept],
        ids=ids,
        images=images[..., None].copy(),
        split=np.repeat(split, IMAGES_PER_CLASS),
        group=np.repeat(group, IMAGES_PER_CLASS),
    )


# A run reads its images several times.
@functools.cache
def _draw():
    """Returns the characters, the images and the ids."""
    drawn = _drawn_characters(_font_folder())
    kept = _unlike(drawn)
    return kept, *_draw_images({code: drawn[code] for code in kept})


def _font_folder():
    import matplotlib

    return Path(matplotlib.get_data_path(), "fonts", "ttf")


def _drawn_characters(folder):
    """Returns `{code point: {font: drawing}}` in the order of the scripts."""
    from matplotlib.ft2font import FT2Font
    from PIL import ImageFont

    paths = {font: folder / f"{font}.ttf" for font in FONTS}
    paths = {font: str(path) for font, path in paths.items() if path.is_file()}
    maps = {font: FT2Font(path).get_charmap() for font, path in paths.items()}
    holders: dict[int, list[str]] = {}
    for font, characters in maps.items():
        for code in characters:
            holders.setdefault(code, []).append(font)
    codes = [
        code
        for code, fonts in holders.items()
        if len(fonts) >= FEWEST_FONTS and _script_number(code) is not None
    ]
    if not codes:
        raise UsageError(
            "`glyphs` needs the DejaVu and STIX fonts that matplotlib ships. "
            f"Received: {len(paths)} of {len(FONTS)} fonts in {folder}. "
            "Install matplotlib again."
        )
    codes.sort(key=lambda code: (_script_number(code), code))
    drawn: dict[int, dict] = {code: {} for code in codes}
    for font, path in paths.items():
        # The other engine is not installed everywhere.
        layout = ImageFont.Layout.BASIC
        face = ImageFont.truetype(path, _POINTS, layout_engine=layout)
        for code in codes:
            drawing = _drawing(face, chr(code)) if code in maps[font] else None
            if drawing is not None:
                drawn[code][font] = drawing
    return {c: by for c, by in drawn.items() if len(by) >= FEWEST_FONTS}


def _script_number(code):
    """Returns the number of a character's script in `SCRIPTS`, or `None`."""
    character = chr(code)
    # One with a decomposition is made of others, as an A with an accent.
    if unicodedata.decomposition(character) or code in _MISDRAWN:
        return None
    category = unicodedata.category(character)
    script = unicodedata.name(character, "").partition(" ")[0].title()
    if category in ("Sm", "Sc", "So"):
        drawn = any(code in part for part in _LINES_AND_DOTS)
        return None if drawn else SCRIPTS.index("Symbols")
    if category in ("Lu", "Ll", "Lo") and script in SCRIPTS:
        return SCRIPTS.index(script)
    return None


def _drawing(face, character):
    """Returns the ink of a character, or `None` if it is blank."""
    from PIL import Image, ImageDraw

    canvas = Image.new("L", _CANVAS)
    draw = ImageDraw.Draw(canvas)
    draw.text(_ORIGIN, character, 255, font=face, anchor="ls")
    box = canvas.getbbox()
    return None if box is None else canvas.crop(box)


def _unlike(drawn):
    """Returns the characters that no font draws like an earlier one.

    Two drawings of one size are alike if the ink of each is next to the ink of
    the other, with at most one pixel as an exception.
    """
    codes = list(drawn)
    alike = np.zeros((len(codes), len(codes)), bool)
    for font in FONTS:
        rows = [row for row, code in enumerate(codes) if font in drawn[code]]
        if not rows:
            continue
        ink = np.stack([_ink(drawn[codes[row]][font]) for row in rows])
        near = _widened(_widened(ink).swapaxes(1, 2)).swapaxes(1, 2)
        # Whole numbers: float32 adds them exactly, in any order.
        ink, near = (a.reshape(len(rows), -1).astype("f4") for a in (ink, near))
        far = ink.sum(axis=1)[:, None] - ink @ near.T
        alike[np.ix_(rows, rows)] |= np.maximum(far, far.T) <= _FAR
    kept: list[int] = []
    for row in range(len(codes)):
        if not alike[row, kept].any():
            kept.append(row)
    return [codes[row] for row in kept]


def _ink(drawing):
    """Marks the ink of a drawing that is as large as an image."""
    side = _FINER * SIDE
    scale = max(drawing.size) / side
    left, top = ((length - scale * side) / 2 for length in drawing.size)
    window = (scale, 0.0, left, 0.0, scale, top)
    return _through(drawing, side, window) >= _IS_INK


def _widened(ink):
    """Marks the pixels to the left and to the right of ink, too."""
    near = ink.copy()
    near[..., 1:] |= ink[..., :-1]
    near[..., :-1] |= ink[..., 1:]
    return near


def _through(drawing, side, window):
    """Returns a square of pixels of a drawing, seen through a window."""
    from PIL import Image

    affine, bilinear = Image.Transform.AFFINE, Image.Resampling.BILINEAR
    image = drawing.transform((side, side), affine, window, bilinear)
    return np.asarray(image.reduce(_FINER))


def _draw_images(drawn):
    """Returns the images and the ids, class after class."""
    drawings, ids = [], []
    for code, by_font in drawn.items():
        fonts = list(by_font)
        for number in range(IMAGES_PER_CLASS):
            font = fonts[number % len(fonts)]
            drawings.append(by_font[font])
            ids.append(f"glyphs/U+{code:04X}/{number:02d}-{font}")
    windows = _windows(np.array([drawing.size for drawing in drawings]))
    images = np.empty((len(ids), SIDE, SIDE), np.uint8)
    for row, (drawing, window) in enumerate(
        zip(drawings, windows.tolist(), strict=True)
    ):
        images[row] = _through(drawing, _FINER * SIDE, window)
    return images, ids


def _windows(sizes):
    """Returns random maps from the pixels of images to those of drawings.

    Args:
        sizes: Integer array `(n, 2)`, widths and heights of the drawings.

    Returns:
        Array `(n, 6)` of rows `a, b, c, d, e, f`: the pixel `(x, y)` of an
        image shows the point `(a x + b y + c, d x + e y + f)` of its drawing.
    """
    # The numbers of `RandomState` are the same in every version of NumPy.
    random = np.random.RandomState(0).uniform(-1, 1, (6, len(sizes)))
    angle, shear = _ROTATION * random[0], _SHEAR * random[1]
    cos, sin = np.cos(angle), np.sin(angle)
    turned = np.array([[cos + shear * sin, shear * cos - sin], [sin, cos]])
    scale = 1 / (1 + _SCALE * random[2:4])
    scale *= sizes.max(axis=1) / (_FINER * _INK)
    linear = np.moveaxis(turned * scale[:, None], -1, 0)
    middle = _FINER * (SIDE / 2 + _SHIFT * random[4:].T)
    start = sizes / 2 - (linear @ middle[..., None])[..., 0]
    return np.concatenate([linear, start[..., None]], axis=2).reshape(-1, 6)
