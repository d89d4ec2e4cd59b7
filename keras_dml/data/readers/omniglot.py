"""Omniglot: characters of 30 alphabets train, those of 20 other ones test."""

from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.data.image_file import open_image, reason_unopened
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import reader
from keras_dml.errors import UsageError
from keras_dml.npz import read_npz

SIDE = 28
_ARRAYS = "omniglot.npz"
_PARTS = ("images_background", "images_evaluation")
_KEYS = ("images28", "label", "alphabet", "split", "class_names")


@reader(_ARRAYS, *_PARTS)
def read_omniglot(root, facts) -> Manifest:
    """Reads 28 x 28 gray images, bright ink on black.

    They come from `omniglot.npz` or from the published folders
    `images_background/` and `images_evaluation/`, whose images are shrunk.
    The arrays of `omniglot.npz` are `images28` (uint8 `(n, 28, 28)`),
    `label`, `alphabet` and `split` (0 trains, 1 tests) with one entry per
    image, and `class_names`.

    Returns:
        `Manifest` of images in memory; `group` is the alphabet.

    Raises:
        UsageError: If files or arrays are missing.
    """
    content: dict[str, Any] = (
        read_npz(root / _ARRAYS, _KEYS)
        if (root / _ARRAYS).is_file()
        else _read_folders(root)
    )
    count = len(content["label"])
    return Manifest(
        name=facts.name,
        labels=content["label"],
        class_names=content["class_names"],
        ids=[f"omniglot/{row:05d}" for row in range(count)],
        images=content["images28"][..., None],
        split=np.where(content["split"] == 0, "train", "test"),
        group=content["alphabet"],
    )


def _read_folders(root: Path):
    """Reads the same arrays from `<part>/<alphabet>/<character>/*.png`."""
    alphabets: dict[str, int] = {}
    classes: dict[Path, int] = {}
    images, rows = [], []
    for split, part in enumerate(_PARTS):
        for path in sorted((root / part).glob("[!.]*/[!.]*/[!.]*")):
            character, alphabet = path.parent, path.parents[1].name
            label = classes.setdefault(character, len(classes))
            group = alphabets.setdefault(alphabet, len(alphabets))
            images.append(_shrink(path))
            rows.append((label, group, split))
    if not rows:
        raise UsageError(
            f"{root} must hold {_PARTS[0]}/<alphabet>/<character>/*.png. "
            "Received: no image. Unpack the published archives again."
        )
    label, group, split = np.asarray(rows).T
    return {
        "images28": np.stack(images),
        "label": label,
        "alphabet": group,
        "split": split,
        "class_names": [f"{one.parent.name}/{one.name}" for one in classes],
    }


def _shrink(path):
    """Inverts black ink on white and shrinks 105 x 105 to 28 x 28 pixels."""
    from PIL import Image, ImageOps

    problem = reason_unopened(path)
    try:
        if problem:
            raise OSError(problem)
        with open_image(path) as image:
            gray = ImageOps.invert(image.convert("L"))
    # Damaged images raise errors of many kinds in Pillow.
    except Exception as error:
        raise UsageError(
            f"{path} must be an image. Received: {error}. Unpack the "
            "published archives again."
        ) from error
    return np.asarray(gray.resize((SIDE, SIDE), Image.Resampling.BOX))
