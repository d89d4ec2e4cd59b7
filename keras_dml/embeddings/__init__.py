"""Embeddings in files, and their evaluation without any model."""

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.evaluate import evaluate_embeddings
from keras_dml.embeddings.loading import iterate_embeddings, load_embeddings
from keras_dml.embeddings.measured import Measured
from keras_dml.embeddings.npz_file import save_embeddings

__all__ = [
    "EmbeddingSet",
    "Measured",
    "evaluate_embeddings",
    "iterate_embeddings",
    "load_embeddings",
    "save_embeddings",
]
