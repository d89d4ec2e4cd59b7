"""keras-dml: deep metric learning for TensorFlow and Keras 3.

Importing the package registers every layer, loss and optimizer with Keras, so
that a saved `.keras` file loads. The console script is the exception: it
answers `--help` without loading Keras, and each command imports what it needs.
"""

import sys
from pathlib import Path

from keras_dml.version import __version__

if Path(sys.argv[0] if sys.argv else "").stem != "keras-dml":
    from keras_dml import callbacks, evaluation, layers, losses, optimizers

__all__ = [
    "__version__",
    "callbacks",
    "evaluation",
    "layers",
    "losses",
    "optimizers",
]
