"""Ours against the numbers of pytorch-metric-learning 2.9.0: memory.

Its `CrossBatchMemory` takes the batch in first and compares each row with all
of the memory but itself, with gradients to the anchors alone. Ours compares
with the batches before; the pairs of the batch itself, with gradients to both
of their rows, are those of the loss `WithMemory`.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.similarities import unit_rows
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "pytorch_metric_learning_memory.npz")
LABELS, X = batches()["shuffled"]
STEPS = [slice(start, start + 4) for start in range(0, 16, 4)]
SIZE = 6

OURS = {
    "contrastive": losses.Contrastive(form="euclidean", dtype="float64"),
    "multi_similarity": losses.MultiSimilarity(dtype="float64"),
    "nt_xent": losses.NTXent(dtype="float64"),
    "sup_con": losses.SupCon(dtype="float64"),
}


def agree(value, gradient, wanted):
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-4
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )


@pytest.mark.parametrize("name", OURS)
def test_every_step_compares_with_the_same_rows(name):
    """Four steps of four rows; the ring of six is overwritten twice."""
    layer = layers.CrossBatchMemory(
        OURS[name], SIZE, warm_up_steps=0, dtype="float64"
    )
    for step, rows in enumerate(STEPS):
        x = tf.Variable(X[rows])
        with tf.GradientTape() as tape:
            column = layer([x, LABELS[rows]], training=True)[:, -1]
            value = tf.reduce_mean(column)
        gradient = tape.gradient(value, x)
        if step == 0:
            np.testing.assert_array_equal(column, 0.0)
        else:
            agree(value, gradient, KEPT["shuffled"][f"{name}-before-{step}"])


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("step", range(4))
def test_theirs_has_the_batch_as_constants_among_its_memory(name, step):
    """The pairs that theirs takes by default, given to our loss by hand."""
    rows = STEPS[step]
    stored = np.arange(max(0, rows.stop - SIZE), rows.stop)
    own = np.arange(rows.start, rows.stop)[:, None] == stored[None, :]
    same = LABELS[rows][:, None] == LABELS[stored][None, :]
    x = tf.Variable(X[rows])
    with tf.GradientTape() as tape:
        pairs = Pairs(
            unit_rows(x),
            unit_rows(tf.constant(X[stored])),
            ops.convert_to_tensor(same & ~own),
            ops.convert_to_tensor(~same),
        )
        value = tf.reduce_mean(OURS[name].pair_loss(pairs))
    gradient = tape.gradient(value, x)
    agree(value, gradient, KEPT["shuffled"][f"{name}-with-{step}"])
