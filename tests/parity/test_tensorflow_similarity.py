"""Ours against the numbers of TensorFlow Similarity 0.17.1."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import losses
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "tensorflow_similarity.npz")
# They expect rows of length one, and do not normalize them.
AS_THEY_ARE = {"normalize": False, "dtype": "float64"}
MININGS = {"hard_hard": "hard", "easy_hard": "easy"}


def triplet(name):
    mining, margin = name.removeprefix("triplet_").rsplit("_", 1)
    soft = margin == "None"
    return losses.Triplet(
        margin=0.0 if soft else float(margin),
        soft=soft,
        mining=MININGS[mining],
        average="all",
        **AS_THEY_ARE,
    )


def sim_clr(labels, x):
    """Theirs adds the losses of the two views, which NT-Xent averages."""
    views = np.tile(np.arange(len(labels) // 2), 2)
    return 2 * losses.NTXent(temperature=0.1, dtype="float64")(views, x)


def multiple_negatives_rank(labels, x):
    """Theirs has one more logit of zero, and scales by 20."""
    half = len(labels) // 2
    logits = 20.0 * ops.matmul(x[:half], ops.transpose(x[half:]))
    logits = ops.concatenate([logits, ops.zeros_like(logits[:, :1])], axis=1)
    return ops.mean(losses.n_pair_loss(logits, np.eye(half, half + 1) > 0))


OURS = {
    "multi_similarity": losses.MultiSimilarity(
        alpha=2.0, beta=40.0, base=0.5, mining_margin=0.1, **AS_THEY_ARE
    ),
    "soft_nearest_neighbor": losses.NCA(temperature=0.5, **AS_THEY_ARE),
    "sim_clr": sim_clr,
    "multiple_negatives_rank": multiple_negatives_rank,
    **{
        f"triplet_{mining}_{margin}": triplet(f"triplet_{mining}_{margin}")
        for mining in MININGS
        for margin in (None, 0.3)
    },
}
# See the tests below.
OTHERS = {
    "circle",
    "triplet_hard_semi-hard_None",
    "triplet_hard_semi-hard_0.3",
    "triplet_easy_semi-hard_None",
    "triplet_easy_semi-hard_0.3",
}


def unit_batch(batch):
    labels, x = batches()[batch]
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    # Theirs computes in float32, ours here in float64 on the same numbers.
    return labels, x.astype("float32").astype("float64")


def test_every_kept_loss_is_compared():
    assert all(kept.keys() == OURS.keys() | OTHERS for kept in KEPT.values())


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", OURS)
def test_values_and_gradients(batch, name):
    labels, x = unit_batch(batch)
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        value = OURS[name](labels, x)
    gradient = tape.gradient(value, x)
    wanted = KEPT[batch][name]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-3
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )


@pytest.mark.parametrize("batch", KEPT)
def test_their_circle_adds_two_logarithms(batch):
    """`log(1 + P) + log(1 + N)`; in the paper, and here, `log(1 + P N)`."""
    labels, x = unit_batch(batch)
    value = losses.Circle(**AS_THEY_ARE)(labels, x)
    theirs = KEPT[batch]["circle"]["value"]
    assert theirs > float(value)
    np.testing.assert_allclose(value, theirs, rtol=0.1)


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("positive", ["hard", "easy"])
def test_their_semi_hard_triplets_are_others(batch, positive):
    """One positive of each row, and a negative beyond its hardest positive.

    Here every positive has a negative that is farther than itself.
    """
    labels, x = unit_batch(batch)
    wanted = KEPT[batch][f"triplet_{positive}_semi-hard_0.3"]["value"]
    distance = 1 - x @ x.T
    values = []
    for row, label in enumerate(labels):
        own = (labels == label) & (np.arange(len(labels)) != row)
        hardest = distance[row, own].max()
        chosen = hardest if positive == "hard" else distance[row, own].min()
        others = distance[row, labels != label]
        farther = others[others > hardest]
        negative = farther.min() if farther.size else others.max()
        values.append(max(0.0, chosen - negative + 0.3))
    np.testing.assert_allclose(np.mean(values), wanted, rtol=1e-5)
    ours = losses.Triplet(
        margin=0.3, mining="facenet", average="all", **AS_THEY_ARE
    )
    assert abs(float(ours(labels, x)) - wanted) > 1e-3
