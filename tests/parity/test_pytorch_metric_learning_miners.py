"""The miners against those of pytorch-metric-learning 2.9.0, in losses.

Theirs counts a pair once for every triplet it is part of, ours once: so the
triplets are compared in triplet losses, and as masks. Their NCA takes from a
miner the rows alone, and their circle loss another gradient.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses, miners
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "pytorch_metric_learning_miners.npz")
OURS = {
    "batch_hard": miners.BatchHard(),
    "easy_semi_hard": miners.BatchEasyHard(),
    "semi_hard_easy": miners.BatchEasyHard("semi_hard", "easy"),
    "easy_hard": miners.BatchEasyHard("easy", "hard"),
    "hard_easy": miners.BatchEasyHard("hard", "easy"),
    "all_hard": miners.BatchEasyHard("all", "hard"),
    "hdc": miners.HDC(),
    "multi_similarity": miners.MultiSimilarity(),
    "pair_margin": miners.PairMargin(0.5, 1.2),
    "angular": miners.Angular(35),
    "triplet_margin_all": miners.TripletMargin(),
    "triplet_margin_hard": miners.TripletMargin(kind="hard"),
    "triplet_margin_semihard": miners.TripletMargin(kind="semi_hard"),
    "triplet_margin_easy": miners.TripletMargin(kind="easy"),
}
TRIPLET = {"margin": 0.5, "mining": "all", "distance": "euclidean"}
LOSSES = {
    "contrastive": (losses.Contrastive, {"form": "euclidean"}),
    "intra_pair_variance": (losses.IntraPairVariance, {}),
    "lifted": (losses.LiftedStructure, {"form": "distance", "margin": 1.0}),
    "lifted_pairs": (losses.LiftedStructure, {"form": "pairs", "margin": 1.0}),
    "multi_similarity": (losses.MultiSimilarity, {}),
    "nt_xent": (losses.NTXent, {}),
    "signal_to_noise": (losses.SignalToNoise, {}),
    "supcon": (losses.SupCon, {}),
    "tuplet_margin": (losses.TupletMargin, {"margin": math.radians(5.73)}),
    "triplet": (losses.Triplet, TRIPLET),
    "triplet_swap": (losses.Triplet, {**TRIPLET, "swap": True}),
    "triplet_soft": (losses.Triplet, {**TRIPLET, "soft": True}),
}


def masks(batch, name):
    """Those of theirs: positive, negative."""
    size = len(batches()[batch][0])
    for kind in ("positive", "negative"):
        kept = np.unpackbits(KEPT[batch][name][kind], count=size**2)
        yield kept.astype(bool).reshape(size, size)


def lacks_a_kind(batch, name, loss):
    """Whether theirs counts rows that have pairs of one kind alone."""
    positive, negative = masks(batch, name)
    n = negative.any(1)
    if loss == "lifted_pairs":
        return (positive & ~(n[:, None] | n)).any()
    return loss == "lifted" and (n != positive.any(1)).any()


def tied(batch, name):
    """Of two equal distances theirs keeps one; both are of one pair."""
    return (batch, name) == ("uneven", "hdc")


EACH = [
    (batch, miner, loss)
    for batch, found in KEPT.items()
    for miner, kept in found.items()
    for loss in kept
    if loss in LOSSES
    and not tied(batch, miner)
    and not lacks_a_kind(batch, miner, loss)
]


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", OURS)
def test_masks(batch, name):
    labels, x = batches()[batch]
    loss = losses.Contrastive(dtype="float64")
    pairs = OURS[name](loss.batch_pairs(labels, x))
    for mask, kept in zip(pairs.masks, masks(batch, name), strict=True):
        mask = mask.numpy()
        if tied(batch, name):
            assert (kept <= mask).all()
            assert mask.sum() == kept.sum() + 1
            np.testing.assert_array_equal(mask, kept | kept.T)
        else:
            np.testing.assert_array_equal(mask, kept)


@pytest.mark.parametrize("batch, name, key", EACH)
def test_values_and_gradients(batch, name, key):
    labels, x = batches()[batch]
    cls, arguments = LOSSES[key]
    loss = cls(**arguments, miner=OURS[name], dtype="float64")
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        value = loss(labels, x)
    gradient = tape.gradient(value, x)
    *wanted, wanted_value = KEPT[batch][name][key]
    wanted = np.reshape(wanted, x.shape)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-5, atol=1e-7)
    largest = abs(wanted).max()
    np.testing.assert_allclose(gradient, wanted, atol=1e-5 * largest + 1e-9)


@pytest.mark.parametrize("name", OURS)
def test_all_of_theirs_choose_something(name):
    for kind in ("positive", "negative"):
        assert any(KEPT[batch][name][kind].any() for batch in KEPT)
    numbers = {
        key: max(abs(KEPT[batch][name][key]).max() for batch in KEPT)
        for key in LOSSES.keys() & KEPT["square"][name].keys()
    }
    assert len(numbers) >= 3
    assert all(numbers.values()), numbers
