"""Draws embeddings in two dimensions, with thumbnails of some images."""

import colorsys
import io

import numpy as np
from PIL import Image, ImageDraw, ImageOps

from keras_dml.evaluation.index.spaces import Space, metric_of
from keras_dml.report.thumbnails import Thumbnails, data_uri

MAX_IMAGES = 2000
MIN_IMAGES = 10
LEAST_CLASSES = 10
PERPLEXITY = 30.0
# Half of scikit-learn's steps at a coarser angle: 2.6 times as fast, and the
# neighbors of digits are kept as well (trustworthiness .993 both).
STEPS = 500
ANGLE = 0.8
CANVAS = 1200
MARGIN = 40
THUMBNAIL = 48
FRAME = 3
DOT = 4


def choose_rows(labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Draws whole classes at random, and at most 2,000 rows of them.

    Whole classes show whether their images lie together. A class has at most
    the rows that let ten classes, or all of fewer, into the map; if the drawn
    classes have more, some rows are left out at random.

    Args:
        labels: Integer array `(rows,)`.
        seed: Integer. Defaults to `0`.

    Returns:
        Int64 array of rows, in random order.
    """
    generator = np.random.default_rng(seed)
    classes = generator.permutation(np.unique(labels))
    most = MAX_IMAGES // min(len(classes), LEAST_CLASSES)
    rows = np.empty(0, np.int64)
    for one in classes:
        of_class = generator.permutation(np.flatnonzero(labels == one))
        rows = np.concatenate([rows, of_class[:most]])
        if len(rows) >= MAX_IMAGES:
            break
    return generator.permutation(rows)[:MAX_IMAGES]


def positions(
    embeddings: np.ndarray, normalize: bool, seed: int = 0
) -> np.ndarray:
    """Places embeddings in the plane by t-SNE, which keeps neighbors close.

    Args:
        embeddings: Float array `(rows, dim)` of at least 10 rows.
        normalize: Whether to compare them by their direction.
        seed: Integer. Defaults to `0`.

    Returns:
        Float array `(rows, 2)` in 0..1.

    Reference:
        van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008.
    """
    # Imported here: loading it takes longer than writing most pages.
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    rows = Space.fit(embeddings, metric_of(normalize)).transform(embeddings)
    # Equal rows have no direction to each other; a little noise gives one.
    noise = np.random.default_rng(seed).normal(size=rows.shape)
    rows = rows + 1e-6 * max(float(rows.std()), 1e-6) * noise
    model = TSNE(
        init="pca" if rows.shape[1] > 1 else "random",
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        max_iter=STEPS,
        angle=ANGLE,
        random_state=seed,
    )
    # Its loops are so short that threads mostly wait for each other: one
    # thread was 3 to 15 times as fast as two.
    with threadpool_limits(1):
        placed = model.fit_transform(rows.astype(np.float32))
    low, high = placed.min(axis=0), placed.max(axis=0)
    return (placed - low) / np.maximum(high - low, 1e-12)


def draw_map(
    places: np.ndarray,
    labels: np.ndarray,
    thumbnails: Thumbnails,
    rows: np.ndarray,
) -> str:
    """Draws dots in the colors of classes, and thumbnails where they fit.

    Args:
        places: Float array `(rows, 2)` in 0..1.
        labels: Integer array `(rows,)`, one color per label.
        thumbnails: `Thumbnails` of all images.
        rows: Integer array `(rows,)`, the rows of the images placed.

    Returns:
        The picture as a data URI.
    """
    colors = _colors(labels)
    # No ground: the page has a light one or a dark one.
    canvas = Image.new("RGBA", (CANVAS, CANVAS), (0, 0, 0, 0))
    draw = ImageDraw.Draw(canvas)
    spots = MARGIN + places * (CANVAS - 2 * MARGIN)
    for (x, y), color in zip(spots, colors, strict=True):
        draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), fill=color)
    shown = _apart(spots)
    pictures = thumbnails.squares(rows[shown], THUMBNAIL)
    corners = np.round(spots[shown]).astype(int) - THUMBNAIL // 2 - FRAME
    for number, picture, corner in zip(
        shown, pictures, corners.tolist(), strict=True
    ):
        image = Image.fromarray(picture)
        canvas.paste(
            ImageOps.expand(image, FRAME, colors[number]), tuple(corner)
        )
    buffer = io.BytesIO()
    canvas.save(buffer, "WEBP", quality=82)
    return data_uri(buffer.getvalue(), "image/webp")


def _apart(spots: np.ndarray) -> np.ndarray:
    """Returns spots whose thumbnails do not overlap; earlier spots win."""
    least = THUMBNAIL + 2 * FRAME
    chosen: list[int] = []
    for number, spot in enumerate(spots):
        gaps = np.abs(spots[chosen] - spot).max(axis=1)
        if (gaps >= least).all():
            chosen.append(number)
    return np.array(chosen, np.int64)


def _colors(labels: np.ndarray) -> list[tuple[int, int, int]]:
    """Returns a color per row; consecutive labels have distant hues."""
    colors = []
    for label in labels.tolist():
        hue = label * 0.618033988749895 % 1
        value = 0.65 + 0.2 * (label % 3) / 2
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.85, value)
        colors.append((int(255 * red), int(255 * green), int(255 * blue)))
    return colors
