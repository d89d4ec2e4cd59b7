"""Lets `python -m keras_dml` stand for the command `keras-dml`."""

from keras_dml.cli import main

if __name__ == "__main__":
    main()
