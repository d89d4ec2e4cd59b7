"""Writes `tensorflow_addons.npz`: values and gradients of its losses.

Run in an environment of Python 3.11 with
`tensorflow-cpu==2.15.1 tensorflow-addons==0.23.0 "numpy<2"`:

    python generate_tensorflow_addons.py
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa
import tensorflow_results
from batches import indicators

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


def products(x):
    """A matrix of similarities that is not symmetric."""
    return tf.matmul(x, x[:, ::-1], transpose_b=True)


def losses():
    """Functions of labels and embeddings, by name."""
    named = {
        "contrastive": contrastive,
        "lifted_struct": tfa.losses.lifted_struct_loss,
        "npairs": lambda labels, x: tfa.losses.npairs_loss(labels, products(x)),
        "npairs_multilabel": lambda labels, x: (
            tfa.losses.npairs_multilabel_loss(
                indicators(labels.numpy()), products(x)
            )
        ),
    }
    for name, metric in METRICS.items():
        named[f"triplet_hard_soft_{name}"] = lambda labels, x, metric=metric: (
            tfa.losses.triplet_hard_loss(
                labels, x, soft=True, distance_metric=metric
            )
        )
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


if __name__ == "__main__":
    tensorflow_results.write(
        Path(__file__).with_name("tensorflow_addons.npz"),
        losses(),
        unit=lambda name: name == "contrastive",
    )
