"""Embeds images and searches references with a LiteRT file.

It needs numpy, Pillow and ai-edge-litert, and nothing of Keras or TensorFlow:

    pip install numpy pillow ai-edge-litert
    python embed.py RUN/export/litert-int8 photo.jpg another.png

With references beside the model (see README.md) it prints the nearest of them,
and "no match" where even that is farther than the manifest's threshold; else
the embedding's first values. Pass `--output embeddings.npy` to keep the
embeddings.
"""

import argparse
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image, ImageOps

# Pillow knows more, and starts Ghostscript for one of them.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")


class Embedder:
    """A `.tflite` file and what its own metadata says about its images."""

    def __init__(self, path, threads=2):
        with zipfile.ZipFile(path) as archive:
            self.manifest = json.loads(archive.read("manifest.json"))
        interpreter = Interpreter(str(path), num_threads=threads)
        self._run = interpreter.get_signature_runner("serve")
        image = self.manifest["image"]
        self.shape = (image["height"], image["width"], image["channels"])

    def embed(self, images):
        """uint8 `(n, height, width, channels)` to float32 `(n, dim)`."""
        images = np.asarray(images)
        # The interpreter itself takes a wrong shape and answers nonsense.
        if images.dtype != np.uint8 or images.shape[1:] != self.shape:
            raise ValueError(
                f"`images` must be uint8 of shape (n, *{self.shape}). "
                f"Received: dtype={images.dtype}, shape={images.shape}"
            )
        rows = [self._run(image=one[None])["embedding"] for one in images]
        dim = self.manifest["embedding"]["dim"]
        return np.concatenate(rows) if rows else np.zeros((0, dim), "float32")

    def load(self, path):
        """Decodes a file, turns it upright, resizes and crops its center."""
        image = self.manifest["image"]
        with Image.open(path, formats=FORMATS) as opened:
            upright = ImageOps.exif_transpose(opened)
        if upright.mode.startswith("I;16"):
            # Pillow would make all but the darkest of them white.
            upright = Image.fromarray(
                (np.asarray(upright) >> 8).astype("uint8")
            )
        elif upright.mode in ("I", "F"):
            raise ValueError(
                f"{path} must have at most 16 bits. Received: {upright.mode}"
            )
        layer = upright.convert("RGBA")
        white = Image.new("RGBA", layer.size, "white")
        picture = Image.alpha_composite(white, layer).convert("RGB")
        side, shorter = image["resize"], min(picture.size)
        width, height = (
            (side, side)
            if image["squash"]
            else (
                side * picture.width // shorter,
                side * picture.height // shorter,
            )
        )
        # Pillow's bilinear filter is antialiased, as the training's is.
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        left = round((width - self.shape[1]) / 2)
        top = round((height - self.shape[0]) / 2)
        picture = picture.crop(
            (left, top, left + self.shape[1], top + self.shape[0])
        )
        if self.shape[2] == 1:
            return np.asarray(picture.convert("L"))[..., None]
        return np.asarray(picture)


def references_file(folder):
    """The notes on the references; `None` where there are none."""
    # Version 0.1 called them a gallery.
    for name in ("references.json", "gallery.json"):
        if (Path(folder) / name).is_file():
            return Path(folder) / name
    return None


class References:
    """int8 embeddings of known images."""

    def __init__(self, file):
        notes = json.loads(file.read_text("utf-8"))
        rows = np.fromfile(file.with_suffix(".bin"), dtype="int8")
        self.rows = rows.reshape(notes["rows"], notes["dim"])
        self.scale, self.labels, self.ids = (
            notes[key] for key in ("scale", "labels", "ids")
        )

    def search(self, embeddings, k=5):
        """Lists of (id, label, cosine), the nearest first, one per row."""
        scores = self.scale * (embeddings @ self.rows.T.astype("float32"))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [
            [(self.ids[i], self.labels[i], float(row[i])) for i in nearest]
            for row, nearest in zip(scores, best, strict=True)
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="an exported folder")
    parser.add_argument("images", type=Path, nargs="+")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--output", type=Path, help="an .npy file to write")
    arguments = parser.parse_args()
    embedder = Embedder(arguments.model / "embedder.tflite")
    embeddings = embedder.embed(
        [embedder.load(one) for one in arguments.images]
    )
    if arguments.output:
        np.save(arguments.output, embeddings)
    file = references_file(arguments.model)
    if file:
        found = References(file).search(embeddings, arguments.k)
        least = (embedder.manifest.get("threshold") or {}).get("score", -2)
        for image, nearest in zip(arguments.images, found, strict=True):
            unknown = nearest[0][2] < least
            print(f"{image}: no match" if unknown else image)
            for identity, label, cosine in nearest:
                print(f"  {cosine:.4f}  {label}  {identity}")
    else:
        for image, row in zip(arguments.images, embeddings, strict=True):
            print(image, np.array2string(row[:8], precision=4))


if __name__ == "__main__":
    sys.exit(main())
