"""Image files of every kind, made in memory."""

import io

import numpy as np
from PIL import Image

RNG = np.random.default_rng(0)


def encode(image, kind, **arguments):
    buffer = io.BytesIO()
    image.save(buffer, kind, **arguments)
    return buffer.getvalue()


def smooth(height=40, width=56, channels=4):
    """Random but smooth, so that lossy files stay close to it."""
    small = RNG.integers(0, 256, (4, 4, channels)).astype("uint8")
    bands = [
        Image.fromarray(small[..., band]).resize((width, height))
        for band in range(channels)
    ]
    return Image.merge("RGBA"[:channels], bands)


RGBA = smooth()
RGB = RGBA.convert("RGB")
GRAY = RGB.convert("L")

FILES = {
    "jpeg": encode(RGB, "JPEG"),
    "gray_jpeg": encode(GRAY, "JPEG"),
    "cmyk_jpeg": encode(RGB.convert("CMYK"), "JPEG"),
    "png": encode(RGB, "PNG"),
    "alpha_png": encode(RGBA, "PNG"),
    "gray_alpha_png": encode(RGBA.convert("LA"), "PNG"),
    "palette_png": encode(RGB.quantize(200), "PNG"),
    "palette_4_bits_png": encode(RGB.quantize(9), "PNG"),
    "one_bit_png": encode(RGB.convert("1"), "PNG"),
    "bmp": encode(RGB, "BMP"),
    "gif": encode(RGB, "GIF"),
    "animated_gif": encode(
        RGB, "GIF", save_all=True, append_images=[RGB.rotate(180)]
    ),
    "webp": encode(RGB, "WEBP"),
    "alpha_webp": encode(RGBA, "WEBP", lossless=True),
    "one_pixel_png": encode(Image.new("RGB", (1, 1), "red"), "PNG"),
}

BROKEN = {
    "empty": b"",
    "text": b"no image",
    "truncated_jpeg": FILES["jpeg"][:-200],
    "truncated_png": FILES["png"][:-200],
    "truncated_bmp": FILES["bmp"][:200],
    "tiff": encode(RGB, "TIFF"),
}


def on_white(contents):
    """What Pillow makes of a file, as uint8 `(height, width, 3)`."""
    layer = Image.open(io.BytesIO(contents)).convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return np.asarray(Image.alpha_composite(white, layer).convert("RGB"))
