"""The functions that a SavedModel answers by."""

from collections.abc import Callable

import keras
import tensorflow as tf

from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit
from keras_dml.export.served_index import ServedIndex
from keras_dml.export.serving import embed_image_bytes


def make_endpoints(
    embedder: keras.Model,
    *,
    resize: int | None = None,
    squash: bool = False,
    max_pixels: int = decoding.MAX_PIXELS,
    index: ServedIndex | None = None,
) -> dict[str, Callable]:
    """Functions of named tensors that return dicts of tensors.

    Args:
        embedder: Model of square images with values in 0..255.
        resize: As in `export_saved_model`. Defaults to `None`.
        squash: As in `export_saved_model`. Defaults to `False`.
        max_pixels: As in `export_saved_model`. Defaults to 89,478,485.
        index: `ServedIndex` to search. Defaults to `None`: no endpoint for
            it.

    Returns:
        Dict of name to `tf.function` with an input signature.
    """
    height, _, channels = embedder.input_shape[1:]
    fit = ImageFit(height, channels, resize, squash)
    shape = (None, *fit.shape)

    # One function for all endpoints, so that its graph is stored once.
    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
    def embed(images):
        # TensorFlow Serving does not check shapes, and a convolution takes
        # images of any size.
        images = tf.ensure_shape(images, shape)
        return embedder(images, training=False)

    def serve(image):
        return {"embedding": embed(tf.cast(image, tf.float32))}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def embed_bytes(image_bytes):
        image_bytes = tf.ensure_shape(image_bytes, (None,))
        return embed_image_bytes(embed, image_bytes, fit, max_pixels)

    def serve_image_bytes(image_bytes):
        return embed_bytes(image_bytes)

    def similarity(first, second):
        first, second = (_unit(embed(images)) for images in (first, second))
        cosines = tf.matmul(first, second, transpose_b=True)
        # The number of pairs is a scalar on purpose: a server that joins
        # requests to batches refuses scalars, and so cannot hand out one
        # request's columns to another.
        return {"similarity": cosines, "pairs": tf.size(cosines)}

    images = tf.TensorSpec(shape, tf.float32, name="image")
    contents = tf.TensorSpec((None,), tf.string, name="image_bytes")
    endpoints = {
        "serve": tf.function(serve, [images]),
        "serve_uint8": tf.function(
            serve, [tf.TensorSpec(shape, tf.uint8, name="image")]
        ),
        "serve_image_bytes": tf.function(serve_image_bytes, [contents]),
        "similarity": tf.function(
            similarity,
            [
                tf.TensorSpec(shape, tf.float32, name="first"),
                tf.TensorSpec(shape, tf.float32, name="second"),
            ],
        ),
    }
    if index is not None:
        endpoints.update(_search_endpoints(embed_bytes, contents, index))
    return endpoints


def _search_endpoints(embed_bytes, contents, index):
    rows = (None, index.dim)

    # One function for both, so that one searcher is held in memory.
    @tf.function(
        input_signature=[
            tf.TensorSpec(rows, tf.float32),
            tf.TensorSpec(None, tf.int32),
            tf.TensorSpec((None,), tf.bool),
        ]
    )
    def search(embeddings, k, usable):
        embeddings = tf.ensure_shape(embeddings, rows)
        return index.search(embeddings, k, usable)

    def neighbors(image_bytes, k):
        embedded = embed_bytes(image_bytes)
        return search(embedded["embedding"], k, embedded["ok"])

    def neighbors_of_embedding(embedding, k):
        usable = tf.ones([tf.shape(embedding)[0]], tf.bool)
        return search(embedding, k, usable)

    # Of any rank: one number, or one for each row, as servers that join
    # requests to batches need it.
    k = tf.TensorSpec(None, tf.int32, name="k")
    return {
        "neighbors": tf.function(neighbors, [contents, k]),
        "neighbors_of_embedding": tf.function(
            neighbors_of_embedding,
            [tf.TensorSpec(rows, tf.float32, name="embedding"), k],
        ),
    }


def _unit(rows):
    lengths = tf.norm(rows, axis=1, keepdims=True)
    return tf.math.divide_no_nan(rows, lengths)
