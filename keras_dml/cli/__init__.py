"""The command line: parses, then calls the library.

Every import that loads Keras or TensorFlow happens inside a command, so that
`keras-dml --help` answers at once.
"""

import os

# Plots are files here, and no window opens.
os.environ["MPLBACKEND"] = "agg"
for _name in ("COLUMNS", "TERMINAL_WIDTH"):
    _width = os.environ.get(_name, "")
    # Rich and Typer take these as they are, were they 0 or no number.
    if not (_width.isdecimal() and len(_width) < 6 and int(_width) >= 20):
        os.environ.pop(_name, None)

from keras_dml.cli.app import main  # noqa: E402

__all__ = ["main"]
