"""Ours against the numbers of tensorflow-addons 0.23.0."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import losses
from tests.parity.batches import batches, indicators, load

KEPT = load(Path(__file__).parent, "tensorflow_addons.npz")
METRICS = {
    "euclidean": "euclidean",
    "squared": "squared_euclidean",
    "cosine": "cosine",
}


def products(x):
    return ops.matmul(x, ops.transpose(ops.flip(x, axis=1)))


def npairs(labels, x):
    same = labels[:, None] == labels[None, :]
    return ops.mean(losses.n_pair_loss(products(x), same))


def npairs_multilabel(labels, x):
    """Theirs weights a target by the number of labels that it shares.

    In ours all rows that share one weigh the same. The difference is that of
    the two means over the targets.
    """
    shared = indicators(labels) @ indicators(labels).T
    logits, weights = products(x), shared / shared.sum(axis=1, keepdims=True)
    even = (shared > 0) / (shared > 0).sum(axis=1, keepdims=True)
    difference = ops.sum((even - weights) * logits, axis=1)
    return ops.mean(losses.n_pair_loss(logits, shared > 0) + difference)


def triplet(name):
    kind, metric, margin = name.removeprefix("triplet_").split("_")
    if kind == "hard" and margin in METRICS:
        metric, margin = margin, "0"  # which has no part in the soft form
    return losses.Triplet(
        margin=float(margin),
        mining={"semihard": "facenet", "hard": "hard"}[kind],
        soft="soft" in name,
        distance=METRICS[metric],
        average="all",
        # Their angular distance normalizes, the other two do not.
        normalize=metric == "cosine",
        dtype="float64",
    )


def ours(name):
    if name == "contrastive":
        # Theirs takes the distances of pairs that the caller chose, and no
        # mean: the generator takes ours, of the non-zero terms.
        return losses.Contrastive(
            form="euclidean", power=2.0, normalize=False, dtype="float64"
        )
    if name == "lifted_struct":
        return losses.LiftedStructure(
            form="pairs", margin=1.0, normalize=False, dtype="float64"
        )
    if name == "npairs_multilabel":
        return npairs_multilabel
    return npairs if name == "npairs" else triplet(name)


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", KEPT["balanced"])
def test_values_and_gradients(batch, name):
    labels, x = batches()[batch]
    if name == "contrastive":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    # Theirs computes in float32, ours here in float64 on the same numbers.
    x = tf.Variable(x.astype("float32"), dtype="float64")
    with tf.GradientTape() as tape:
        value = ours(name)(labels, x)
    gradient = tape.gradient(value, x)
    wanted = KEPT[batch][name]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-3
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )


def test_rows_without_a_partner_do_not_count_as_with_them():
    """tensorflow-addons gives such an anchor the positive distance zero.

    Its hard triplet is then `margin - d_an`, which pushes a row from its
    negatives for having no positive, and which counts in the mean.
    """
    labels = np.array([0, 0, 1])
    x = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    value = losses.Triplet(
        margin=1.0,
        mining="hard",
        distance="euclidean",
        average="all",
        normalize=False,
    )(labels, x)
    wanted = ((1 - 0.5 + 1) + (1 - np.sqrt(1.25) + 1)) / 2
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
