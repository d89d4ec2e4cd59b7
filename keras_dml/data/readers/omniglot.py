"""Omniglot: characters of 30 alphabets train, those of 20 other ones test."""

import os
from pathlib import Path

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import reader
from keras_dml.errors import UsageError

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
    if (root / _ARRAYS).is_file():
        content = _read_arrays(root / _ARRAYS)
    else:
        content = _read_folders(root)
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


def _read_arrays(path):
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in _KEYS}
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"{path} must hold the arrays {_KEYS}. Received: {error}"
        ) from error


def _read_folders(root: Path):
    """Reads the same arrays from `<part>/<alphabet>/<character>/*.png`."""
    alphabets: dict[str, int] = {}
    class_names: list[str] = []
    images, rows = [], []
    for split, part in enumerate(_PARTS):
        for alphabet in _listed(root / part):
            group = alphabets.setdefault(alphabet, len(alphabets))
            for character in _listed(root / part / alphabet):
                label = len(class_names)
                class_names.append(f"{alphabet}/{character}")
                folder = root / part / alphabet / character
                for name in _listed(folder):
                    images.append(_shrink(folder / name))
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
        "class_names": class_names,
    }


def _listed(folder):
    if not folder.is_dir():
        return []
    return sorted(n for n in os.listdir(folder) if not n.startswith("."))


def _shrink(path):
    """Inverts black ink on white and shrinks 105 x 105 to 28 x 28 pixels."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        gray = ImageOps.invert(image.convert("L"))
    return np.asarray(gray.resize((SIDE, SIDE), Image.Resampling.BOX))
