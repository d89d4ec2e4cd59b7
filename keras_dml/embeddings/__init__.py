"""Embeddings in files, and their evaluation without any model."""

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.evaluate import evaluate_embeddings
from keras_dml.embeddings.measured import Measured
from keras_dml.embeddings.npz_file import load_embeddings, save_embeddings

__all__ = [
    "EmbeddingSet",
    "Measured",
    "evaluate_embeddings",
    "load_embeddings",
    "save_embeddings",
]
