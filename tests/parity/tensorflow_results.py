"""Values and gradients of the losses of libraries for an older TensorFlow."""

import numpy as np
import tensorflow as tf
from batches import batches


def write(path, functions, unit):
    """Writes what functions of labels and embeddings give for all batches.

    Args:
        path: `pathlib.Path` of the npz file.
        functions: Dictionary of functions by name.
        unit: Function of the name: whether to give it rows of length one.
    """
    arrays = {}
    for batch, (labels, x) in batches().items():
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        for name, function in functions.items():
            # Their masks are float32: so is all of it.
            rows = tf.constant(x / lengths if unit(name) else x, "float32")
            with tf.GradientTape() as tape:
                tape.watch(rows)
                value = function(tf.constant(labels), rows)
            arrays[f"{batch}/{name}/value"] = value.numpy()
            gradient = tf.convert_to_tensor(tape.gradient(value, rows))
            arrays[f"{batch}/{name}/gradient"] = gradient.numpy()
    np.savez_compressed(path, **arrays)
