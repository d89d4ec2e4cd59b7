# ruff: noqa: F401
"""Embeddings with the classes of their images, in memory and in files."""

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.files import save_embeddings
from keras_dml.embeddings.loading import iterate_embeddings, load_embeddings
