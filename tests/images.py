"""Folders of small images."""

import io
import struct
import zlib

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


PNG = b"\x89PNG\r\n\x1a\n"

# The opposite of what each EXIF orientation asks a viewer to do.
_STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
ORIENTATIONS = tuple(_STORED)
_OPTIONS = {
    "JPEG": {"quality": 98, "subsampling": 0},
    "WEBP": {"lossless": True},
    "AVIF": {"quality": 98, "subsampling": "4:4:4"},
}


def asymmetric_picture(width=60, height=44):
    """An RGB picture of smooth colors that differs from each turn of it."""
    y, x = np.mgrid[0:height, 0:width]
    channels = np.stack(
        [x * 240 // width, y * 240 // height, (x < 15) * (y < 15) * 200], -1
    )
    return Image.fromarray(channels.astype(np.uint8))


def turned_file(orientation, kind="JPEG", picture=None, exif=None):
    """Bytes of a file that shows `asymmetric_picture` if it is turned.

    `exif` replaces the block with the orientation; it starts with
    `Exif\\0\\0`.
    """
    picture = picture or asymmetric_picture()
    method = _STORED[orientation]
    if method is not None:
        picture = picture.transpose(method)
    if exif is None:
        tags = Image.Exif()
        tags[0x0112] = orientation
        exif = tags.tobytes()
    buffer = io.BytesIO()
    picture.save(buffer, kind, exif=exif, **_OPTIONS.get(kind, {}))
    return buffer.getvalue()


def turned_folder(root, kind="JPEG"):
    """A folder of two classes with the eight orientations each."""
    for label in ("one", "two"):
        (root / label).mkdir(parents=True)
        for orientation in ORIENTATIONS:
            path = root / label / f"{orientation}.{kind.lower()}"
            path.write_bytes(turned_file(orientation, kind))
    return root


def many_scans(count):
    """Bytes of a progressive JPEG whose last scan comes again and again."""
    buffer = io.BytesIO()
    Image.new("RGB", (48, 40), "teal").save(buffer, "JPEG", progressive=True)
    whole = buffer.getvalue()
    last = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + last * count + whole[-2:]


def png_chunk(kind, content):
    """Bytes of a part of a PNG file, with its length and checksum."""
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum


def png(width, height, depth, color_type, data):
    """Bytes of a PNG file whose pixels are compressed already."""
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    return PNG + b"".join(png_chunk(*chunk) for chunk in chunks)
