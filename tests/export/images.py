"""Image files of every kind, made in memory."""

import io
import struct

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


def patched(contents, start, new):
    return contents[:start] + new + contents[start + len(new) :]


def animated(image, kind, **arguments):
    """An animation whose other frame is upside down."""
    return encode(
        image,
        kind,
        save_all=True,
        append_images=[image.rotate(180)],
        **arguments,
    )


RGBA = smooth()
RGB = RGBA.convert("RGB")
GRAY = RGB.convert("L")
PALETTE = RGB.quantize(60)
LOSSLESS_WEBP = animated(RGBA, "WEBP", lossless=True)


def frame_on_canvas(corner, canvas, **arguments):
    """A GIF whose frame lies somewhere on a canvas of another size."""
    contents = encode(PALETTE, "GIF", interlace=0, **arguments)
    contents = patched(contents, 6, struct.pack("<HH", *canvas))
    frame = contents.index(b",\0\0\0\0" + struct.pack("<HH", *PALETTE.size))
    return patched(contents, frame + 1, struct.pack("<HH", *corner))


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
    "32_bits_bmp": encode(RGBA, "BMP"),
    "gray_bmp": encode(GRAY, "BMP"),
    "palette_bmp": encode(PALETTE, "BMP"),
    "full_palette_bmp": encode(RGB.quantize(256), "BMP"),
    "top_down_bmp": patched(
        encode(RGB, "BMP"), 22, struct.pack("<i", -RGB.height)
    ),
    "gif": encode(RGB, "GIF"),
    "gray_gif": encode(GRAY, "GIF"),
    "animated_gif": animated(RGB, "GIF"),
    "interlaced_gif": encode(PALETTE, "GIF", interlace=1),
    "alpha_gif": encode(RGBA, "GIF"),
    "transparent_color_gif": encode(PALETTE, "GIF", transparency=7),
    "frame_on_canvas_gif": frame_on_canvas((5, 3), (70, 61)),
    "transparent_frame_on_canvas_gif": frame_on_canvas(
        (5, 3), (70, 61), transparency=7
    ),
    "frame_beyond_canvas_gif": frame_on_canvas((20, 30), (50, 90)),
    "webp": encode(RGB, "WEBP"),
    "alpha_webp": encode(RGBA, "WEBP", lossless=True),
    "animated_webp": animated(RGB, "WEBP"),
    "lossless_animated_webp": animated(RGB, "WEBP", lossless=True),
    "animated_alpha_webp": LOSSLESS_WEBP,
    # Decoders then ignore the transparency of its frames.
    "undeclared_alpha_webp": patched(
        LOSSLESS_WEBP, 20, bytes([LOSSLESS_WEBP[20] & ~0x10])
    ),
    "one_pixel_png": encode(Image.new("RGB", (1, 1), "red"), "PNG"),
}

BROKEN = {
    "empty": b"",
    "text": b"no image",
    "truncated_jpeg": FILES["jpeg"][:-200],
    "truncated_png": FILES["png"][:-200],
    "truncated_bmp": FILES["bmp"][:200],
    "truncated_palette_bmp": FILES["palette_bmp"][:200],
    "truncated_gif": FILES["gif"][:-200],
    "truncated_webp": FILES["animated_webp"][:-200],
    # Training reads these three; TensorFlow's ops do not.
    "one_bit_bmp": encode(RGB.convert("1"), "BMP"),
    "compressed_bmp": patched(FILES["palette_bmp"], 30, b"\1"),
    "masked_bmp": patched(FILES["32_bits_bmp"], 30, b"\3"),
    "tiff": encode(RGB, "TIFF"),
}


def on_white(contents):
    """What Pillow makes of a file, as uint8 `(height, width, 3)`."""
    layer = Image.open(io.BytesIO(contents)).convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return np.asarray(Image.alpha_composite(white, layer).convert("RGB"))
