import io
import logging
import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_dml.data import decoding, verification
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from tests.data.stand_ins import write_image
from tests.images import many_scans, png


def picture():
    """Smooth colors, so that JPEG keeps them."""
    y, x = np.mgrid[0:40, 0:48]
    channels = np.stack([x * 5, y * 6, (x + y) * 2], axis=-1)
    return Image.fromarray(channels.astype(np.uint8))


def encode(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def translucent():
    image = picture().convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def animation(kind, **options):
    frames = [picture().convert("P"), picture().rotate(180).convert("P")]
    return encode(
        frames[0], kind, save_all=True, append_images=frames[1:], **options
    )


READABLE = {
    "jpeg": lambda: encode(picture(), "JPEG"),
    "jpeg gray": lambda: encode(picture().convert("L"), "JPEG"),
    "jpeg cmyk": lambda: encode(picture().convert("CMYK"), "JPEG"),
    "jpeg progressive": lambda: encode(picture(), "JPEG", progressive=True),
    "jpeg 1x1": lambda: encode(picture().resize((1, 1)), "JPEG"),
    "png": lambda: encode(picture(), "PNG"),
    "png gray": lambda: encode(picture().convert("L"), "PNG"),
    "png 1 bit": lambda: encode(picture().convert("1"), "PNG"),
    "png palette": lambda: encode(picture().convert("P"), "PNG"),
    "png palette 4 bits": lambda: encode(picture().quantize(11), "PNG", bits=4),
    "png palette transparent": lambda: encode(
        picture().convert("P"), "PNG", transparency=3
    ),
    "png alpha": lambda: encode(translucent(), "PNG"),
    "png gray alpha": lambda: encode(translucent().convert("LA"), "PNG"),
    "gif": lambda: encode(picture(), "GIF"),
    "gif animated": lambda: animation("GIF"),
    "bmp": lambda: encode(picture(), "BMP"),
    "bmp palette": lambda: encode(picture().convert("P"), "BMP"),
    "webp": lambda: encode(picture(), "WEBP"),
    "webp alpha": lambda: encode(translucent(), "WEBP", lossless=True),
    "webp animated": lambda: animation("WEBP"),
    "tiff": lambda: encode(picture(), "TIFF"),
}

DAMAGED = {
    "empty": (lambda: b"", "the file is empty"),
    "text": (lambda: b"no image at all", "not an image of a known format"),
    "half a jpeg": (lambda: encode(picture(), "JPEG")[:-300], "JPEG"),
    "jpeg without end": (lambda: encode(picture(), "JPEG")[:-2], "JPEG"),
    "jpeg overwritten": (
        lambda: encode(picture(), "JPEG")[:400] + b"\xff\x00" * 300,
        "JPEG",
    ),
    "jpeg of 100 scans": (
        lambda: many_scans(100),
        "it has more than 64 scans, each of which goes over all pixels",
    ),
    "half a png": (lambda: encode(picture(), "PNG")[:99], "PNG"),
    "half a gif": (lambda: encode(picture(), "GIF")[:-9], "truncated"),
    "jpeg magic only": (lambda: b"\xff\xd8\xff", "JPEG"),
    "png magic only": (lambda: b"\x89PNG", "not an image of a known format"),
}


def on_white(contents):
    """What a viewer with a white page shows, by Pillow alone."""
    layer = Image.open(io.BytesIO(contents)).convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return np.asarray(Image.alpha_composite(white, layer).convert("RGB"))


def test_a_photo_with_a_film_behind_it_is_no_bomb():
    """Motion Photos were refused: a film has any two bytes often enough."""
    photo = encode(picture(), "JPEG")
    film = np.random.default_rng(0).bytes(2**23)
    assert film.count(b"\xff\xda") > decoding.MAX_SCANS
    expected = decoding.decode(photo)
    np.testing.assert_array_equal(decoding.decode(photo + film), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READABLE)
def test_decode_shows_what_pillow_shows(kind):
    contents = READABLE[kind]()
    result = decoding.decode(tf.constant(contents))
    assert result.dtype == tf.uint8
    np.testing.assert_array_equal(result, on_white(contents))
    in_graph = tf.function(decoding.decode)(tf.constant(contents))
    np.testing.assert_array_equal(in_graph, result)
    luma = decoding.decode(contents, channels=1)
    assert luma.shape == (*result.shape[:2], 1)
    weights = np.asarray([0.299, 0.587, 0.114])
    np.testing.assert_allclose(
        luma[..., 0], result.numpy() @ weights, atol=1.01
    )


@pytest.mark.parametrize("kind", READABLE)
def test_decode_and_crop_is_a_part_of_decode(kind):
    contents = READABLE[kind]()

    def lower_right(shape):
        return tf.concat([shape // 3, shape - shape // 3], axis=0)

    result = decoding.decode_and_crop(contents, lower_right)
    whole = decoding.decode(contents).numpy()
    top, left = whole.shape[0] // 3, whole.shape[1] // 3
    np.testing.assert_array_equal(result[:, 1:], whole[top:, left + 1 :])
    # libjpeg has no neighbor to smooth the first column's color with.
    np.testing.assert_allclose(result[:, 0], whole[top:, left], atol=5)


@pytest.mark.parametrize(
    ("least_side", "ratio"), [(None, 1), (41, 1), (40, 2), (20, 4), (7, 8)]
)
def test_a_large_box_is_shrunk_while_decoding(least_side, ratio):
    contents = encode(picture().resize((320, 240)), "JPEG", quality=95)

    def box_of(shape):
        return tf.constant([40, 64, 80, 160])

    result = decoding.decode_and_crop(contents, box_of, least_side=least_side)
    assert result.shape == (80 // ratio, 160 // ratio, 3)
    part = decoding.decode(contents).numpy()[40:120, 64:224].astype(float)
    blocks = part.reshape(80 // ratio, ratio, 160 // ratio, ratio, 3)
    np.testing.assert_allclose(result, blocks.mean(axis=(1, 3)), atol=8)


def png_16_bits(values, color_type):
    """A 16-bit PNG written by hand, for Pillow writes no RGB one."""
    height, width = values.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(width, height, 16, color_type, zlib.compress(rows))


@pytest.mark.parametrize(("shape", "color_type"), [((6, 5, 3), 2), ((6, 5), 0)])
def test_16_bit_png_keeps_the_upper_bits(shape, color_type):
    values = np.random.default_rng(0).integers(0, 2**16, shape)
    result = decoding.decode(png_16_bits(values, color_type)).numpy()
    expected = values >> 8 if len(shape) == 3 else values[..., None] >> 8
    np.testing.assert_array_equal(result, np.broadcast_to(expected, (6, 5, 3)))


def test_16_bit_tiff_keeps_the_upper_bits():
    values = np.random.default_rng(0).integers(0, 2**16, (6, 5)).astype("<u2")
    contents = encode(Image.fromarray(values), "TIFF")
    result = decoding.decode(contents).numpy()
    np.testing.assert_array_equal(result[..., 0], values >> 8)


@pytest.mark.parametrize("images", [np.uint8([[[7]]]), np.uint8([[[1, 2, 3]]])])
def test_to_channels(images):
    assert decoding.to_channels(tf.constant(images), 3).shape == (1, 1, 3)
    assert decoding.to_channels(tf.constant(images), 1).shape == (1, 1, 1)


def make_manifest(folder, good, damaged=()):
    """Good pictures with damaged files among them."""
    paths = [write_image(folder / f"good{i}.jpg", 40 + i) for i in range(good)]
    for position, kind in enumerate(damaged):
        path = folder / f"bad{position}.jpg"
        if kind != "missing":
            path.write_bytes(DAMAGED[kind][0]())
        paths.insert(position * 2, path)
    names = [path.name for path in paths]
    return Manifest("photos", [0] * len(paths), ["a"], names, paths)


@pytest.mark.parametrize("kind", [*DAMAGED, "missing"])
def test_verify_names_damaged_files(tmp_path, kind):
    manifest = make_manifest(tmp_path, 3, [kind])
    found = verification.verify(manifest)
    assert found.rows.tolist() == [1, 2, 3]
    ((path, reason),) = found.bad
    assert path == str(tmp_path / "bad0.jpg")
    expected = "no such file" if kind == "missing" else DAMAGED[kind][1]
    assert expected in reason
    assert "\n" not in reason and "{{" not in reason


def test_a_file_is_verified_once_and_when_it_has_changed(tmp_path):
    """A run reads its images again to export itself: minutes, for photos."""
    manifest = make_manifest(tmp_path, 3, [])
    seen = []

    def count(done, total):
        seen.append(done)

    for _ in range(2):
        found = verification.verify(manifest, count)
        assert found.rows.tolist() == [0, 1, 2]
    # Once with a batch and the end, once with the end alone.
    assert seen == [3, 3, 3]
    seen.clear()
    assert len(verification.verify(manifest, count, again=True).rows) == 3
    assert seen == [3, 3]
    path = Path(manifest.paths[1])
    path.write_bytes(path.read_bytes()[:40])
    assert verification.verify(manifest).rows.tolist() == [0, 2]


def test_a_file_that_decodes_at_the_second_attempt_is_good(
    tmp_path, monkeypatch
):
    """A busy disk made an image bad for ever."""

    def busy(path):
        return tf.shape(tf.io.read_file(path + ".gone"))

    monkeypatch.setattr(verification, "_shape_of", busy)
    manifest = make_manifest(tmp_path, 2, [])
    found = verification.verify(manifest)
    assert found.bad == ()
    assert found.rows.tolist() == [0, 1]


def test_verify_takes_every_readable_kind(tmp_path):
    paths = []
    for number, make in enumerate(READABLE.values()):
        paths.append(tmp_path / f"{number}.jpg")
        paths[-1].write_bytes(make())
    ids = [path.name for path in paths]
    calls = []
    found = verification.verify(
        Manifest("all", [0] * len(ids), ["a"], ids, paths),
        progress=lambda done, total: calls.append((done, total)),
    )
    assert found.bad == ()
    assert calls[-1] == (len(ids), len(ids))


def test_images_in_memory_are_good():
    images = np.zeros((3, 2, 2, 1), np.uint8)
    manifest = Manifest("x", [0] * 3, ["a"], ["0", "1", "2"], images=images)
    assert verification.verify(manifest).rows.tolist() == [0, 1, 2]
    assert verification.drop_bad(manifest) is manifest


def test_few_bad_files_are_dropped_and_logged(tmp_path, caplog):
    manifest = make_manifest(tmp_path, 200, ["empty", "empty"])
    with caplog.at_level(logging.WARNING):
        kept = verification.drop_bad(manifest)
    assert len(kept) == 200 and "bad0.jpg" not in kept.ids
    assert f"{tmp_path / 'bad0.jpg'}: the file is empty" in caplog.text
    assert "Left out 2 unreadable of 202 images" in caplog.text
    caplog.clear()
    assert len(verification.drop_bad(manifest)) == 200
    assert not caplog.text, "It was said before."


def test_many_bad_files_are_an_error(tmp_path):
    manifest = make_manifest(tmp_path, 20, ["empty", "text"])
    with pytest.raises(
        UsageError, match=r"At most 1 % .* 2 of 22 unreadable.*bad0.jpg \(the f"
    ):
        verification.drop_bad(manifest)
    assert len(verification.drop_bad(manifest, limit=0.1)) == 20
