"""Tensor functions that layers and losses share, on any Keras backend."""
