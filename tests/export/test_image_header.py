"""Sizes are known before anything is decoded."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_dml.export import export_saved_model
from keras_dml.export.decoding_ops import decode_image
from keras_dml.export.gif_ops import index_gif
from keras_dml.export.image_header import (
    count_pixels,
    first_gif_frame,
    octets_of,
)
from tests.export.bombs import BOMBS
from tests.export.images import FILES, RGB, encode
from tests.images import many_scans

FRAMES = [RGB, RGB.rotate(90), RGB.rotate(180)]

MEMORY = """
    import resource

    import numpy as np
    import tensorflow as tf

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    served = tf.saved_model.load(sys.argv[1])
    files = np.load(sys.argv[2], allow_pickle=True)["files"]
    good = files[-1]
    served.serve_image_bytes(tf.constant([good] * len(files)))
    before = peak()
    answer = served.serve_image_bytes(tf.constant(list(files)))
    print(answer["ok"].numpy().tolist(), peak() - before)
"""


@pytest.mark.parametrize("name", FILES)
def test_sizes(name):
    image = Image.open(io.BytesIO(FILES[name]))
    pixels = image.width * image.height
    if "gif" in name:
        # The canvas and the frame.
        pixels += RGB.width * RGB.height
    if "webp" in name:
        pixels *= image.n_frames
    assert count_pixels(FILES[name]).numpy() == pixels


def test_all_frames_of_a_webp_count():
    contents = encode(
        RGB, "WEBP", save_all=True, append_images=FRAMES[1:], lossless=True
    )
    assert count_pixels(contents).numpy() == 3 * RGB.width * RGB.height


def test_of_an_animated_gif_one_frame_is_decoded():
    contents = encode(
        RGB,
        "GIF",
        save_all=True,
        append_images=FRAMES[1:],
        comment=b"c" * 700,
        duration=100,
    )
    octets = octets_of(contents)
    frame, transparent = first_gif_frame(octets)
    cut = index_gif(contents, octets, frame).numpy()
    indices = Image.open(io.BytesIO(cut))
    animated = Image.open(io.BytesIO(contents))
    assert (indices.n_frames, int(transparent)) == (1, -1)
    np.testing.assert_array_equal(np.asarray(indices), np.asarray(animated))


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_by_their_header(name):
    message = "too many pixels"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decode_image(BOMBS[name])


@pytest.mark.parametrize("name", FILES)
def test_the_limit_is_the_largest_that_is_decoded(name):
    pixels = int(count_pixels(FILES[name]))
    decode_image(FILES[name], max_pixels=pixels)
    if pixels:
        with pytest.raises(tf.errors.InvalidArgumentError, match="too many"):
            decode_image(FILES[name], max_pixels=pixels - 1)


@pytest.mark.slow
def test_files_that_end_in_their_header():
    contents = [
        FILES[name][:length]
        for name in ("jpeg", "png", "gif", "webp", "alpha_webp")
        for length in (0, 3, 5, 11, 17, 23, 29)
    ]
    files = tf.data.Dataset.from_tensor_slices(contents)
    assert not list(files.map(decode_image).ignore_errors())


@pytest.mark.slow
def test_a_service_survives_bombs(make_embedder, run_bare, tmp_path):
    folder = export_saved_model(make_embedder(), tmp_path / "saved_model")
    files = np.array([*BOMBS.values(), FILES["jpeg"]], dtype=object)
    np.savez(tmp_path / "files.npz", files=files)
    printed = run_bare(
        MEMORY,
        folder,
        tmp_path / "files.npz",
        absent=("keras", "keras_dml"),
    )
    ok, megabytes = printed.strip().splitlines()[-1].rsplit(maxsplit=1)
    assert ok == str([False] * len(BOMBS) + [True])
    assert float(megabytes) < 100


def test_a_jpeg_of_many_scans_is_refused():
    """Each goes over all pixels: a file of 300 kB took minutes."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="scans"):
        decode_image(many_scans(100))
    assert decode_image(many_scans(20)).shape == (40, 48, 3)
