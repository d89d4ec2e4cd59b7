"""Loads embedders that a run saved."""

from pathlib import Path

import keras

from keras_dml.errors import RunError


def load_embedder(path: str | Path) -> keras.Model:
    """Loads an `embedder.keras`.

    Args:
        path: The file.

    Raises:
        RunError: If the file is missing, damaged or not a Keras model.

    Example:

    ```python
    embedder = load_embedder("runs/digits-norm_softmax-0/embedder.keras")
    ```
    """
    # Importing the package has registered its layers, which Keras needs here.
    try:
        return keras.saving.load_model(path, compile=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} does not load as an embedder: {error}. Restore it, or "
            "train the run again."
        ) from error
