"""The command line: parses, then calls the library.

Every import that loads Keras or TensorFlow happens inside a command, so that
`keras-dml --help` answers at once.
"""

from keras_dml.cli.app import main

__all__ = ["main"]
