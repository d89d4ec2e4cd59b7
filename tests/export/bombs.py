"""Small files that announce, or hold, more pixels than fit into memory."""

import io
import struct
import zlib

from PIL import Image

from tests.export.images import FILES, RGB, encode, patched
from tests.images import png

SIDE = 20_000


def _png():
    """A whole and valid one: white, one bit for each of its pixels."""
    rows = (b"\0" + b"\xff" * (SIDE // 8)) * SIDE
    return png(SIDE, SIDE, 1, 0, zlib.compress(rows, 1))


def _jpeg():
    contents = bytearray(FILES["jpeg"])
    # The frame's header: marker, length, depth, height, width.
    start = contents.index(b"\xff\xc0") + 5
    contents[start : start + 4] = struct.pack(">HH", SIDE, SIDE)
    return bytes(contents)


def _gif(canvas, frame):
    contents = bytearray(FILES["gif"])
    contents[6:10] = struct.pack("<HH", canvas, canvas)
    start = contents.index(b",\0\0\0\0") + 5
    contents[start : start + 4] = struct.pack("<HH", frame, frame)
    return bytes(contents)


def _webp():
    """An animation of 400 frames of half a million pixels."""
    frames = [
        Image.new("RGB", (800, 640), (shade % 256, 0, 0))
        for shade in range(400)
    ]
    buffer = io.BytesIO()
    frames[0].save(
        buffer,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        lossless=True,
        method=0,
    )
    return buffer.getvalue()


BOMBS = {
    "png": _png(),
    "jpeg": _jpeg(),
    "bmp": patched(FILES["bmp"], 18, struct.pack("<ii", SIDE, -SIDE)),
    "gif_canvas": _gif(SIDE, 56),
    "gif_frame": _gif(56, SIDE),
    "lossy_webp": patched(FILES["webp"], 26, struct.pack("<HH", 16383, 16383)),
    "lossless_webp": patched(
        encode(RGB, "WEBP", lossless=True), 21, b"\xff\xff\xff\x0f"
    ),
    "animated_webp": _webp(),
}
