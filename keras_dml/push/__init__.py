"""Puts a run on the Hugging Face Hub, with a card that says what it is."""

from keras_dml.push.push import push_run

__all__ = ["push_run"]
