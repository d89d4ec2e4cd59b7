"""Lets `python -m keras_dml` stand for the command `keras-dml`."""

from keras_dml.cli import main

main()
