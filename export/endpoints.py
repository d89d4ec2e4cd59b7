"""The functions that a SavedModel serves."""

import functools
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_dml.data.image_fit import ImageFit
from keras_dml.export.decoding_ops import embed_image_bytes
from keras_dml.export.options import ExportOptions
from keras_dml.export.served_index import (
    ServedIndex,
    unit_rows,
)

# AutoGraph would convert all layers that are called, which takes seconds.
_function = functools.partial(tf.function, autograph=False)


def make_endpoints(
    embedder: keras.Model,
    options: ExportOptions,
    index: ServedIndex | None = None,
) -> dict[str, Callable]:
    """Makes functions of named tensors that return dicts of tensors.

    Args:
        embedder: Model of square images with values in 0..255.
        options: `ExportOptions`.
        index: `ServedIndex` to search. Defaults to `None`, no endpoint that
            searches.

    Returns:
        Dict of name to `tf.function` with an input signature.
    """
    height, _, channels = embedder.input_shape[1:]
    fit = ImageFit(height, channels, options.resize, bool(options.squash))
    shape = (None, *fit.shape)
    image = functools.partial(tf.TensorSpec, shape)
    contents = tf.TensorSpec((None,), tf.string, name="image_bytes")

    # All endpoints share this function, so that its graph is stored once.
    @_function(input_signature=[image(tf.float32)])
    def embed(images):
        # TensorFlow Serving does not check shapes, and a convolution accepts
        # images of any size.
        images = tf.ensure_shape(images, shape)
        count = tf.shape(images)[0]
        # Some layers fail on an empty batch, which so gets a spare image.
        images = tf.cond(
            count > 0, lambda: images, lambda: tf.zeros((1, *fit.shape))
        )
        images = tf.ensure_shape(images, shape)
        return embedder(images, training=False)[:count]

    def serve(image):
        return {"embedding": embed(tf.cast(image, tf.float32))}

    @_function(input_signature=[contents])
    def serve_image_bytes(image_bytes):
        image_bytes = tf.ensure_shape(image_bytes, (None,))
        return embed_image_bytes(embed, image_bytes, fit, options.max_pixels)

    @_function(
        input_signature=[
            image(tf.float32, "first"),
            image(tf.float32, "second"),
        ]
    )
    def similarity(first, second):
        first, second = (unit_rows(embed(images)) for images in (first, second))
        cosines = tf.matmul(first, second, transpose_b=True)
        # The number of pairs is a scalar on purpose: a server that merges
        # requests into batches rejects scalar outputs, and so cannot return
        # the columns of one request to another.
        return {"similarity": cosines, "pairs": tf.size(cosines)}

    endpoints = {
        "serve": _function(serve, [image(tf.float32, "image")]),
        "serve_uint8": _function(serve, [image(tf.uint8, "image")]),
        "serve_image_bytes": serve_image_bytes,
        "similarity": similarity,
    }
    if index is not None:
        endpoints.update(_search_endpoints(serve_image_bytes, contents, index))
    return endpoints


def _search_endpoints(embed_bytes, contents, index):
    embeddings = tf.TensorSpec((None, index.dim), tf.float32, name="embedding")
    # `k` is one number, or one for each row, which servers that merge requests
    # into batches need.
    k = tf.TensorSpec(None, tf.int32, name="k")
    usable = tf.TensorSpec((None,), tf.bool)

    # Both endpoints share this function, so that memory holds one searcher.
    @_function(input_signature=[embeddings, k, usable])
    def search(embedding, k, usable):
        embedding = tf.ensure_shape(embedding, embeddings.shape)
        return index.search(embedding, k, usable)

    @_function(input_signature=[contents, k])
    def neighbors(image_bytes, k):
        embedded = embed_bytes(image_bytes)
        return search(embedded["embedding"], k, embedded["ok"])

    @_function(input_signature=[embeddings, k])
    def neighbors_of_embedding(embedding, k):
        usable = tf.ones([tf.shape(embedding)[0]], tf.bool)
        return search(embedding, k, usable)

    return {
        "neighbors": neighbors,
        "neighbors_of_embedding": neighbors_of_embedding,
    }
