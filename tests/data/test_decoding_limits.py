"""Images of extreme sizes: one pixel, and more than fits into memory."""

import io
import resource
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_dml.data import decoding, verification
from keras_dml.data.manifest import Manifest
from tests.images import png

SIDE = 20_000
REASON = "it has 400,000,000 pixels, more than the limit of 89,478,485"


def black_png():
    """A whole image of one bit a pixel: 400 million of them in 50 kB."""
    packer = zlib.compressobj(9)
    row = bytes(1 + SIDE // 8)
    rows = b"".join(packer.compress(row) for _ in range(SIDE))
    return png(SIDE, SIDE, 1, 0, rows + packer.flush())


def small_jpeg():
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(buffer, "JPEG")
    return buffer.getvalue()


def jpeg_with_large_header():
    content = bytearray(small_jpeg())
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">HH", SIDE, SIDE)
    return bytes(content)


def gif_with_large_header():
    buffer = io.BytesIO()
    Image.new("P", (8, 8)).save(buffer, "GIF")
    content = bytearray(buffer.getvalue())
    content[6:10] = struct.pack("<HH", SIDE, SIDE)
    return bytes(content)


BOMBS = {
    "png of 1 bit": black_png,
    "png of 8 bits": lambda: png(SIDE, SIDE, 8, 2, zlib.compress(bytes(99))),
    "jpeg": jpeg_with_large_header,
    "gif": gif_with_large_header,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_by_its_header(kind, tmp_path):
    path = tmp_path / "bomb.jpg"
    path.write_bytes(BOMBS[kind]())
    manifest = Manifest("bombs", [0], ["a"], ["bomb.jpg"], [path])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = verification.verify(manifest)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert found.bad == ((str(path), REASON),)
    # As 8-bit RGB it would be 1.2 GB.
    assert grown < 200 * 1024


def test_a_bomb_is_refused_in_training_too():
    with pytest.raises(tf.errors.InvalidArgumentError, match="too many pixels"):
        decoding.decode_and_crop(
            jpeg_with_large_header(), lambda shape: [0, 0, 8, 8]
        )


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF"])
def test_the_limit_is_on_the_number_of_pixels(kind):
    buffer = io.BytesIO()
    Image.new("RGB", (30, 20), "blue").save(buffer, kind)
    contents = buffer.getvalue()
    assert decoding.decode(contents, max_pixels=600).shape == (20, 30, 3)
    with pytest.raises(tf.errors.OpError, match=r"too many pixels\D+600"):
        decoding.decode(contents, max_pixels=599)
    expected = "it has 600 pixels, more than the limit of 599"
    assert verification.why_refused(contents, max_pixels=599) == expected


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF"])
def test_one_pixel_decodes(kind):
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1), "white").save(buffer, kind)
    result = decoding.decode(buffer.getvalue())
    np.testing.assert_allclose(result, np.full((1, 1, 3), 255), atol=1)


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    path = tmp_path / "a.jpg"
    path.write_bytes(small_jpeg())

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    # The administrator, as which tests may run, is refused nothing.
    monkeypatch.setattr("builtins.open", refuse)
    assert "Permission denied" in verification.reason_refused(path)
