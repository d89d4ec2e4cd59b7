"""Writes embeddings for TensorBoard's projector."""

import io
import math
from pathlib import Path

import numpy as np
from PIL import Image

from keras_dml.embeddings import EmbeddingSet
from keras_dml.files import replacing, write_text
from keras_dml.report.thumbnails import Thumbnails

MAX_IMAGES = 5000
SPRITE_SIDE = 48
TENSOR, METADATA, SPRITE = "embeddings.tsv", "metadata.tsv", "sprite.png"
_CONFIG = """embeddings {{
  tensor_name: "test images"
  tensor_path: "{tensor}"
  metadata_path: "{metadata}"
  sprite {{
    image_path: "{sprite}"
    single_image_dim: {side}
    single_image_dim: {side}
  }}
}}
"""


def write_projector(
    folder: Path,
    embeddings: EmbeddingSet,
    thumbnails: Thumbnails,
    seed: int = 0,
) -> int:
    """Writes the files that TensorBoard's projector reads from a folder.

    Args:
        folder: The run's TensorBoard folder.
        embeddings: `EmbeddingSet`.
        thumbnails: `Thumbnails` of the same rows.
        seed: Integer, the seed that draws 5,000 rows if there are more.
            Defaults to `0`.

    Returns:
        The number of images written.
    """
    rows = np.arange(len(embeddings))
    if len(rows) > MAX_IMAGES:
        generator = np.random.default_rng(seed)
        rows = np.sort(generator.choice(rows, MAX_IMAGES, replace=False))
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.StringIO()
    np.savetxt(buffer, embeddings.embeddings[rows], "%.6g", delimiter="\t")
    write_text(folder / TENSOR, buffer.getvalue())
    lines = ["class\tid"]
    for name, identity in zip(
        embeddings.names[rows].tolist(),
        embeddings.ids[rows].tolist(),
        strict=True,
    ):
        lines.append(f"{_plain(name)}\t{_plain(identity)}")
    write_text(folder / METADATA, "\n".join(lines) + "\n")
    with replacing(folder / SPRITE) as temporary:
        _sprite(thumbnails.squares(rows, SPRITE_SIDE)).save(temporary)
    write_text(
        folder / "projector_config.pbtxt",
        _CONFIG.format(
            tensor=TENSOR, metadata=METADATA, sprite=SPRITE, side=SPRITE_SIDE
        ),
    )
    return len(rows)


def _sprite(pictures: np.ndarray) -> Image.Image:
    """Joins all pictures in one square, row by row, as the projector reads."""
    side = math.ceil(math.sqrt(len(pictures)))
    padded = np.full((side * side, *pictures.shape[1:]), 255, np.uint8)
    padded[: len(pictures)] = pictures
    height, width = pictures.shape[1:3]
    grid = padded.reshape(side, side, height, width, 3).swapaxes(1, 2)
    return Image.fromarray(grid.reshape(side * height, side * width, 3))


def _plain(value: object) -> str:
    """Replaces the characters that separate columns and rows by spaces."""
    return " ".join(str(value).split())
