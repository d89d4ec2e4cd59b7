"""Folders of small images."""

import numpy as np
from PIL import Image


def image_folder(root, classes=4, images=6, size=32, suffix=".jpg"):
    """A folder of class folders whose classes differ by color.

    Their names are `class_0`, ..., and their images `0.jpg`, ..., with as many
    digits as the last one needs.
    """
    rng = np.random.default_rng(0)
    for label in range(classes):
        folder = root / f"class_{label:0{len(str(classes - 1))}}"
        folder.mkdir(parents=True)
        color = rng.integers(0, 256, 3)
        for number in range(images):
            noise = rng.integers(-30, 30, (size, size, 3))
            pixels = np.clip(color + noise, 0, 255).astype(np.uint8)
            name = f"{number:0{len(str(images - 1))}}{suffix}"
            Image.fromarray(pixels).save(folder / name)
    return root
