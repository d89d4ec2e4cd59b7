"""Decoding with TensorFlow ops alone agrees with Pillow and training."""

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit
from keras_dml.export.decoding_ops import decode_image, embed_image_bytes
from tests.conformance import to_numpy
from tests.export.images import BROKEN, FILES, on_white


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_decodes_as_pillow_and_as_training(name):
    pixels = decode_image(FILES[name]).numpy().astype(int)
    # JPEG decoders may round differently.
    tolerance = 2 if "jpeg" in name else 0
    assert np.abs(pixels - on_white(FILES[name])).max() <= tolerance
    files = tf.data.Dataset.from_tensors(FILES[name])
    trained = files.map(decoding.decode).get_single_element()
    np.testing.assert_array_equal(pixels, trained)


@pytest.mark.parametrize("name", BROKEN)
def test_refuses(name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode_image(BROKEN[name])


def embed_files(embedder, contents):
    size, _, channels = embedder.input_shape[1:]
    contents = tf.constant(contents, tf.string)
    return embed_image_bytes(embedder, contents, ImageFit(size, channels))


@pytest.mark.slow
def test_broken_files_get_zeros_and_leave_the_others_alone(make_embedder):
    embedder = make_embedder()
    good = list(FILES.values())
    bad = list(BROKEN.values())
    alone = to_numpy(embed_files(embedder, good)["embedding"])
    mixed = embed_files(embedder, bad[:2] + good + bad[2:])
    ok = [False] * 2 + [True] * len(good) + [False] * (len(bad) - 2)
    assert mixed["ok"].numpy().tolist() == ok
    embeddings = to_numpy(mixed["embedding"])
    np.testing.assert_allclose(embeddings[ok], alone, atol=1e-6)
    assert not embeddings[~np.array(ok)].any()


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 3])
def test_only_broken_files(make_embedder, count):
    result = embed_files(make_embedder(), [b"?"] * count)
    assert result["embedding"].shape == (count, 8)
    assert not result["embedding"].numpy().any()
    assert not result["ok"].numpy().any()


@pytest.mark.slow
def test_gray_embedder_takes_color_files(make_embedder):
    result = embed_files(make_embedder(channels=1), list(FILES.values()))
    assert result["ok"].numpy().all()
