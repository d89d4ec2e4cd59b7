"""Runs a LiteRT file as a client does, and compares embeddings."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_dml.console import without_native_output


def run_litert(folder, images, batch_size=1):
    """Embeddings of uint8 images, `batch_size` of them at a time."""
    with without_native_output():
        interpreter = Interpreter(str(folder / "embedder.tflite"))
        run = interpreter.get_signature_runner("serve")
        return np.concatenate(
            [
                run(image=images[start : start + batch_size])["embedding"]
                for start in range(0, len(images), batch_size)
            ]
        )


def cosines(actual, expected):
    """Cosine of each row to its counterpart."""
    actual, expected = (
        rows / np.linalg.norm(rows.astype("float64"), axis=1, keepdims=True)
        for rows in (actual, expected)
    )
    return np.sum(actual * expected, axis=1)
