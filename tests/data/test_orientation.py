"""Photos are turned upright, and no tag makes a photo unreadable."""

import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageOps

from keras_dml.data import decoding, verification
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.image_fit import ImageFit
from keras_dml.data.manifest import Manifest
from keras_dml.data.orientation import exif_orientation
from keras_dml.data.pipeline import evaluation_batches, train_batches
from keras_dml.export.decoding_ops import decode_image
from keras_dml.report.thumbnails import Thumbnails
from tests.images import (
    ORIENTATIONS,
    asymmetric_picture,
    png_chunk,
    turned_file,
)

UPRIGHT = np.asarray(asymmetric_picture()).astype(int)
ATOL = 8
KINDS = ["JPEG", "PNG", "WEBP", "TIFF"]
LITTLE = b"II*\0" + struct.pack("<I", 8)
TAG_6 = struct.pack("<HHHIHHI", 1, 0x0112, 3, 1, 6, 0, 0)


def big_endian(value, count=1, kind=3, place=8):
    head = b"MM\0*" + struct.pack(">I", place)
    entry = struct.pack(">HHIHH", 0x0112, kind, count, value, 0)
    other = struct.pack(">HHII", 0x010E, 2, 4, 0x41414100)
    return head + struct.pack(">H", 2) + other + entry + bytes(4)


def jpeg_with(tiff, *before):
    """A stored-as-6 JPEG with the segments `before` in front of its EXIF."""
    plain = turned_file(6, exif=b"")
    segments = [*before, (0xE1, b"Exif\0\0" + tiff)]
    return (
        plain[:2]
        + b"".join(
            struct.pack(">BBH", 0xFF, mark, len(data) + 2) + data
            for mark, data in segments
        )
        + plain[2:]
    )


def in_graph(function):
    """One graph for all tests, as training and a SavedModel have one."""
    return tf.function(function, input_signature=[tf.TensorSpec((), tf.string)])


train_decode = in_graph(lambda contents: decoding.decode(contents))
serve_decode = in_graph(lambda contents: decode_image(contents))
orientation_of = in_graph(exif_orientation)


def read(contents):
    return int(orientation_of(contents))


@pytest.mark.slow
@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_decode_is_upright(kind, orientation):
    contents = turned_file(orientation, kind)
    with Image.open(io.BytesIO(contents)) as image:
        shown = np.asarray(ImageOps.exif_transpose(image)).astype(int)
    np.testing.assert_allclose(shown, UPRIGHT, atol=ATOL)
    pixels = train_decode(contents)
    np.testing.assert_array_equal(pixels, shown)
    if kind != "TIFF":
        served = serve_decode(contents)
        np.testing.assert_array_equal(served, pixels)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_png_of_4_bits_is_upright(orientation):
    picture = asymmetric_picture().quantize(11)
    contents = turned_file(orientation, "PNG", picture)
    expected = np.asarray(picture.convert("RGB"))
    np.testing.assert_array_equal(decoding.decode(contents), expected)
    np.testing.assert_array_equal(serve_decode(contents), expected)


def test_a_tiff_of_16_bits_is_upright():
    values = np.random.default_rng(0).integers(0, 2**16, (6, 5)).astype("<u2")
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "TIFF", tiffinfo={0x0112: 3})
    pixels = decoding.decode(buffer.getvalue()).numpy()
    np.testing.assert_array_equal(pixels[..., 0], values[::-1, ::-1] >> 8)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_box_is_cut_from_the_upright_image(kind, orientation):
    seen = []

    def box_of(shape):
        seen.append(shape.numpy().tolist())
        return tf.constant([4, 8, 24, 40])

    contents = turned_file(orientation, kind)
    part = decoding.decode_and_crop(contents, box_of)
    np.testing.assert_allclose(part, UPRIGHT[4:28, 8:48], atol=ATOL)
    assert seen == [[44, 60]]


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_box_that_shrinks_while_decoding_is_upright(orientation):
    picture = asymmetric_picture(320, 240)
    part = decoding.decode_and_crop(
        turned_file(orientation, picture=picture),
        lambda shape: tf.constant([40, 64, 80, 160]),
        least_side=20,
    )
    whole = np.asarray(picture).astype(float)[40:120, 64:224]
    blocks = whole.reshape(20, 4, 40, 4, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(part, blocks, atol=ATOL)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A `Manifest` of all orientations, as JPEG and as PNG."""
    folder = tmp_path_factory.mktemp("photos")
    paths = []
    for kind in ("JPEG", "PNG"):
        for orientation in ORIENTATIONS:
            paths.append(folder / f"{orientation}.{kind.lower()}")
            paths[-1].write_bytes(turned_file(orientation, kind))
    ids = [path.name for path in paths]
    return Manifest("photos", [0] * len(ids), ["a"], ids, paths)


@pytest.mark.parametrize("squash", [False, True])
def test_evaluation_batches_are_upright(photos, squash):
    batches = evaluation_batches(
        photos, batch_size=16, image_size=35, resize=38, squash=squash
    )
    ((inputs, _),) = batches
    expected = ImageFit(35, 3, 38, squash).fit(UPRIGHT.astype("uint8"))
    np.testing.assert_allclose(inputs["image"][0], expected, atol=ATOL)
    np.testing.assert_allclose(
        inputs["image"], expected[None].numpy().repeat(16, 0), atol=ATOL
    )


@pytest.mark.slow
@pytest.mark.parametrize("crop", ["center", "random", "random_resized"])
def test_train_batches_are_upright(photos, crop):
    augmentation = Augmentation(
        crop=crop, area=(1.0, 1.0), aspect=(60 / 44, 60 / 44), resize=36
    )
    batches = train_batches(
        photos,
        lambda epoch: [np.arange(16)],
        image_size=36,
        augmentation=augmentation,
    )
    inputs, _ = next(iter(batches))
    images = inputs["image"].numpy()
    # Red grows to the right and green to the bottom, wherever the crop lies.
    across = np.diff(images.mean(axis=1)[..., 0])
    down = np.diff(images.mean(axis=2)[..., 1])
    assert (across > 0).all() and (down > 0).all()
    assert np.ptp(images.mean(axis=1)[..., 1], axis=1).max() < 10
    if crop != "random":
        np.testing.assert_allclose(images, images[:1].repeat(16, 0), atol=ATOL)


def test_thumbnails_are_upright(photos):
    thumbnails = Thumbnails(photos)
    for row in range(len(photos)):
        pixels = thumbnails.pixels(row).astype(int)
        np.testing.assert_allclose(pixels, UPRIGHT, atol=ATOL)
    squares = thumbnails.squares(np.arange(len(photos)), 32).astype(int)
    np.testing.assert_allclose(
        squares, squares[:1].repeat(len(photos), 0), atol=ATOL
    )


def test_verification_reads_all_of_them(photos):
    assert verification.verify(photos).bad == ()


@pytest.mark.parametrize("value", ORIENTATIONS)
def test_both_byte_orders(value):
    little = struct.pack("<HHHIHHI", 1, 0x0112, 3, 1, value, 0, 0)
    assert read(jpeg_with(LITTLE + little)) == value
    assert read(jpeg_with(big_endian(value))) == value


def test_exif_need_not_be_the_first_segment():
    decoy = b"Exif\0\0" + big_endian(3)
    before = [
        (0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        (0xE2, b"ICC_PROFILE\0" + bytes(60_000)),
        (0xFE, b"a comment \xff\xe1\0\x30" + decoy),
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
    ]
    contents = jpeg_with(LITTLE + TAG_6, *before)
    assert read(contents) == 6
    np.testing.assert_allclose(decoding.decode(contents), UPRIGHT, atol=ATOL)
    only_decoy = turned_file(1, exif=b"")
    comment = struct.pack(">BBH", 0xFF, 0xFE, len(decoy) + 2) + decoy
    assert read(only_decoy[:2] + comment + only_decoy[2:]) == 1


def test_fill_bytes_may_precede_a_mark():
    contents = jpeg_with(LITTLE + TAG_6)
    assert read(contents[:2] + b"\xff\xff\xff" + contents[2:]) == 6


def test_exif_of_a_second_image_in_the_file_does_not_count():
    assert read(turned_file(1, exif=b"") + jpeg_with(LITTLE + TAG_6)) == 1


def test_png_may_hold_exif_after_its_pixels():
    plain = turned_file(6, "PNG", exif=b"")
    tiff = LITTLE + TAG_6
    contents = plain[:-12] + png_chunk(b"eXIf", tiff) + plain[-12:]
    np.testing.assert_array_equal(decoding.decode(contents), UPRIGHT)
    np.testing.assert_array_equal(serve_decode(contents), UPRIGHT)


@pytest.mark.parametrize("name", [b"", b"Exif\0\0"])
def test_webp_may_name_its_exif_twice(name):
    plain = turned_file(6, "WEBP", exif=b"Exif\0\0" + LITTLE + TAG_6)
    block = LITTLE + TAG_6
    start = plain.index(b"EXIF")
    data = name + block
    data = b"EXIF" + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
    contents = plain[:start] + data
    contents = b"RIFF" + struct.pack("<I", len(contents) - 8) + contents[8:]
    np.testing.assert_array_equal(decoding.decode(contents), UPRIGHT)
    np.testing.assert_array_equal(serve_decode(contents), UPRIGHT)


HOSTILE = {
    "nothing": b"",
    "no header": b"Exif again",
    "another magic": b"II+\0" + LITTLE[4:] + TAG_6,
    "directory at itself": b"II*\0\0\0\0\0" + TAG_6,
    "directory beyond the end": b"II*\0\xff\xff\xff\xff" + TAG_6,
    "directory at the last byte": b"II*\0\x17\0\0\0" + TAG_6,
    "no entries": LITTLE + b"\0\0" + TAG_6[2:],
    "entry cut off": LITTLE + TAG_6[:9],
    "no such orientation": big_endian(9),
    "orientation 0": big_endian(0),
    "a large orientation": big_endian(0xFFFF),
    "two values": big_endian(6, count=2),
    "a fraction": big_endian(6, kind=5),
    "too large": b"\xff" * 60_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_tag_counts_as_absent(name):
    contents = jpeg_with(HOSTILE[name])
    assert read(contents) == 1
    stored = decoding.decode(turned_file(6, exif=b""))
    np.testing.assert_array_equal(decoding.decode(contents), stored)
    np.testing.assert_array_equal(serve_decode(contents), stored)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_a_damaged_tag_leaves_other_formats_readable(kind, name):
    contents = turned_file(1, kind, exif=b"Exif\0\0" + HOSTILE[name])
    pixels = decoding.decode(contents).numpy().astype(int)
    np.testing.assert_allclose(pixels, UPRIGHT, atol=ATOL)


def test_more_entries_than_there_are_hide_no_tag():
    assert read(jpeg_with(LITTLE + b"\xff\xff" + TAG_6[2:])) == 6


def test_a_file_may_end_anywhere():
    for kind in ("JPEG", "PNG", "WEBP"):
        contents = turned_file(6, kind)
        found = [
            read(contents[:end]) for end in range(0, min(len(contents), 700))
        ]
        assert set(found) <= {1, 6}, kind


def test_random_bytes_in_the_tag_never_fail():
    rng = np.random.default_rng(0)
    for kind in ("JPEG", "PNG", "WEBP"):
        contents = turned_file(6, kind)
        word = {"JPEG": b"Exif", "PNG": b"eXIf", "WEBP": b"EXIF"}[kind]
        start = contents.index(word) - 6
        for _ in range(150):
            damaged = bytearray(contents)
            for place in start + rng.integers(0, 40, 3):
                damaged[place % len(damaged)] = rng.integers(256)
            assert 1 <= read(bytes(damaged)) <= 8


@pytest.mark.parametrize("size", [0, 2, 0xFFFF])
def test_segments_without_end_are_given_up(size):
    segment = struct.pack(">BBH", 0xFF, 0xE2, size)
    contents = b"\xff\xd8" + segment * 60_000 + b"Exif\0\0"
    assert read(contents) == 1
    assert read(contents[:200_000] + b"Exif\0\0") == 1
