"""Writes `tensorflow_addons.npz`: values and gradients of its losses.

Run in an environment of Python 3.11 with
`tensorflow-cpu==2.15.1 tensorflow-addons==0.23.0 "numpy<2"`:

    python generate_tensorflow_addons.py
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa
from batches import batches

METRICS = {"euclidean": "L2", "squared": "squared-L2", "cosine": "angular"}


def contrastive(labels, x):
    """The loss takes the distances of chosen pairs; ours chooses all."""
    labels = labels.numpy()
    rows, columns = np.nonzero(~np.eye(len(labels), dtype=bool))
    same = labels[rows] == labels[columns]
    distance = tf.norm(tf.gather(x, rows) - tf.gather(x, columns), axis=1)
    values = tfa.losses.contrastive_loss(
        tf.cast(same, "float32"), distance, margin=1.0
    )
    negatives = tf.boolean_mask(values, ~same)
    return tf.reduce_mean(tf.boolean_mask(values, same)) + tf.reduce_mean(
        tf.boolean_mask(negatives, negatives > 0)
    )


def losses():
    """Functions of labels and embeddings, by name."""
    named = {
        "contrastive": contrastive,
        "lifted_struct": tfa.losses.lifted_struct_loss,
        "npairs": lambda labels, x: tfa.losses.npairs_loss(
            labels, tf.matmul(x, x[:, ::-1], transpose_b=True)
        ),
        "triplet_hard_soft": lambda labels, x: tfa.losses.triplet_hard_loss(
            labels, x, soft=True
        ),
    }
    for name, metric in METRICS.items():
        for margin in (0.3, 1.0):
            arguments = {"margin": margin, "distance_metric": metric}
            for kind in ("semihard", "hard"):
                function = getattr(tfa.losses, f"triplet_{kind}_loss")
                named[f"triplet_{kind}_{name}_{margin}"] = (
                    lambda labels, x, function=function, arguments=arguments: (
                        function(labels, x, **arguments)
                    )
                )
    return named


def main():
    arrays = {}
    for batch, (labels, x) in batches().items():
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        for name, loss in losses().items():
            # Masks of tensorflow-addons are float32: so is all of it.
            rows = tf.constant(unit if name == "contrastive" else x, "float32")
            with tf.GradientTape() as tape:
                tape.watch(rows)
                value = loss(tf.constant(labels), rows)
            arrays[f"{batch}/{name}/value"] = value.numpy()
            gradient = tf.convert_to_tensor(tape.gradient(value, rows))
            arrays[f"{batch}/{name}/gradient"] = gradient.numpy()
    path = Path(__file__).with_name("tensorflow_addons.npz")
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
