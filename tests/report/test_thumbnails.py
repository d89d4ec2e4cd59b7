import base64
import io

import numpy as np
from PIL import Image

from keras_dml.data.manifest import Manifest
from keras_dml.report.thumbnails import Thumbnails

RNG = np.random.default_rng(0)


def manifest(tmp_path, *shapes):
    paths = []
    for number, shape in enumerate(shapes):
        path = tmp_path / f"{number}.png"
        Image.fromarray(RNG.integers(0, 255, shape, np.uint8)).save(path)
        paths.append(str(path))
    ids = np.arange(len(shapes))
    return Manifest("x", np.zeros(len(shapes), int), ["x"], ids, paths=paths)


def opened(uri):
    content = base64.b64decode(uri.partition(",")[2])
    return Image.open(io.BytesIO(content))


def test_large_images_shrink_and_keep_their_shape(tmp_path):
    images = Thumbnails(manifest(tmp_path, (200, 400, 3), (30, 20)))
    with opened(images.uri(0)) as picture:
        assert picture.size == (96, 48) and picture.format == "JPEG"


def test_small_images_keep_every_pixel(tmp_path):
    images = Thumbnails(manifest(tmp_path, (30, 20)))
    with opened(images.uri(0)) as picture:
        assert picture.format == "PNG"
        np.testing.assert_array_equal(np.asarray(picture), images.pixels(0))
    gray = np.asarray(Image.open(images.images.paths[0]))
    np.testing.assert_array_equal(images.pixels(0)[..., 1], gray)


def test_images_in_memory_and_in_files_are_alike(tmp_path):
    files = manifest(tmp_path, (40, 40), (40, 40))
    pixels = np.stack(
        [np.asarray(Image.open(path))[..., None] for path in files.paths]
    )
    memory = Manifest("x", [0, 0], ["x"], [0, 1], images=pixels)
    for row in (0, 1):
        assert Thumbnails(files).uri(row) == Thumbnails(memory).uri(row)
    np.testing.assert_array_equal(
        Thumbnails(files).squares(np.array([1, 0]), 24),
        Thumbnails(memory).squares(np.array([1, 0]), 24),
    )


def test_squares_are_the_centre_of_the_whole_image(tmp_path):
    images = Thumbnails(manifest(tmp_path, (40, 120, 3)))
    (square,) = images.squares(np.array([0]), 40)
    np.testing.assert_array_equal(square, images.pixels(0)[:, 40:80])
