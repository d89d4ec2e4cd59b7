"""Ours against the numbers of pytorch-metric-learning 2.9.0."""

import math
from pathlib import Path

import numpy as np
import pytest
from keras import ops

from keras_dml import losses
from keras_dml.ops.pairs import Pairs, pair_distances
from keras_dml.ops.similarities import unit_rows
from tests.losses.steps import value_and_gradient
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "pytorch_metric_learning.npz")

# All of theirs, too, normalize by themselves.
OURS = {
    "contrastive": (losses.Contrastive, {"form": "euclidean"}),
    "contrastive_cosine": (losses.Contrastive, {}),
    "multi_similarity": (losses.MultiSimilarity, {}),
    "multi_similarity_mined": (losses.MultiSimilarity, {"mining_margin": 0.1}),
    "triplet_semi_hard": (
        losses.Triplet,
        {"margin": 0.2, "mining": "all_semi_hard", "distance": "euclidean"},
    ),
    "triplet_hard": (
        losses.Triplet,
        {"margin": 0.2, "mining": "hard", "distance": "euclidean"},
    ),
    "triplet_easy": (
        losses.Triplet,
        {"margin": 0.2, "mining": "easy", "distance": "euclidean"},
    ),
    "lifted_structure": (
        losses.LiftedStructure,
        {"form": "pairs", "margin": 1.0},
    ),
    "generalized_lifted_structure": (
        losses.LiftedStructure,
        {"form": "distance", "margin": 1.0},
    ),
    "n_pairs": (losses.NPair, {"l2": 0.0, "normalize": True}),
    "nt_xent": (losses.NTXent, {}),
    "sup_con": (losses.SupCon, {}),
    "nca": (losses.NCA, {"temperature": 1 / 3}),
    "threshold_consistent": (losses.Contrastive, {"positive_margin": 0.9}),
    "threshold_consistent_weighted": (
        losses.Contrastive,
        {
            "positive_margin": 0.9,
            "positive_weight": 0.5,
            "negative_weight": 2.0,
        },
    ),
    "dynamic_soft_margin": (losses.DynamicSoftMargin, {"bins": 8}),
    "tuplet_of_no_margin": (losses.NTXent, {}),
    "triplet_all": (
        losses.Triplet,
        {"margin": 0.2, "mining": "all", "distance": "euclidean"},
    ),
    "triplet_swap": (
        losses.Triplet,
        {
            "margin": 0.2,
            "mining": "all",
            "distance": "euclidean",
            "swap": True,
        },
    ),
    "triplet_smooth": (
        losses.Triplet,
        {"mining": "all", "distance": "euclidean", "soft": True},
    ),
    # Their angles are in degrees.
    "angular": (losses.Angular, {"angle": math.radians(40.0)}),
    "fast_ap": (losses.FastAP, {}),
    "histogram": (losses.Histogram, {"bins": 20}),
    "intra_pair_variance": (losses.IntraPairVariance, {}),
    "ranked_list": (losses.RankedList, {"negative_scale": 0.0}),
    "ranked_list_weighted": (
        losses.RankedList,
        {"negative_scale": 4.0, "positive_scale": 1.0},
    ),
    "signal_to_noise": (losses.SignalToNoise, {}),
    "tuplet_margin": (losses.TupletMargin, {"margin": math.radians(5.73)}),
}
# Tested below: their numbers are not those of their formulas.
APART = ("circle", "ranked_list", "ranked_list_weighted")
PNP_PARAMETERS = {"ib": 3.0, "dq": 4.0}


def margin(labels, x):
    """Theirs takes triplets; one pair in two triplets would count twice."""
    rows = unit_rows(x)
    positive = labels[:, None] == labels[None, :]
    positive &= ~np.eye(len(labels), dtype=bool)
    negative = np.zeros_like(positive)
    for row, label in enumerate(labels):
        others = np.flatnonzero(labels != label)[: positive[row].sum()]
        negative[row, others] = True
    boundary = ops.full((len(labels),), 1.2, dtype="float64")
    return ops.mean(
        losses.margin_loss(
            pair_distances(Pairs(rows, rows, positive, negative)),
            positive,
            negative,
            boundary,
        )
    )


def smooth_ap(labels, x):
    """Theirs counts the row itself as the first of its answers."""
    rows = unit_rows(x)
    same = labels[:, None] == labels[None, :]
    similarity = ops.matmul(rows, ops.transpose(rows))
    return ops.mean(losses.smooth_ap_loss(similarity, same, ~same, 0.1))


def pnp(penalty):
    """Theirs counts the row itself as one of its positives."""

    def loss(labels, x):
        rows = unit_rows(x)
        same = labels[:, None] == labels[None, :]
        similarity = ops.matmul(rows, ops.transpose(rows))
        return ops.mean(
            losses.pnp_loss(
                similarity,
                same,
                ~same,
                penalty,
                PNP_PARAMETERS.get(penalty),
                temperature=0.1,
            )
        )

    return loss


def two_views(labels, x):
    """Two views of an image are two rows of one class."""
    views = np.tile(np.arange(len(labels) // 2), 2)
    return losses.NTXent(dtype="float64")(views, x)


def vicreg(labels, x):
    views = np.tile(np.arange(len(labels) // 2), 2)
    return losses.VICReg(dtype="float64")(views, x)


def instance(labels, x):
    """Theirs takes labels for places in the batch."""
    loss = losses.Instance(scale=8.0, dtype="float64")
    return loss(np.arange(len(labels)), x)


def ours(name):
    if name == "multiple":
        return losses.WeightedSum(
            [losses.SupCon(), losses.MultiSimilarity()],
            weights=[0.5, 2.0],
            dtype="float64",
        )
    if name in OURS:
        cls, arguments = OURS[name]
        return cls(**arguments, dtype="float64")
    if name.startswith("pnp_"):
        return pnp(name.removeprefix("pnp_"))
    return {
        "instance": instance,
        "margin": margin,
        "smooth_ap": smooth_ap,
        "two_views": two_views,
        "vicreg": vicreg,
    }[name]


@pytest.mark.parametrize(
    "batch, name",
    [(b, n) for b, kept in KEPT.items() for n in kept if n not in APART],
)
def test_values_and_gradients(batch, name):
    labels, x = batches()[batch]
    value, gradient = value_and_gradient(ours(name), labels, x)
    wanted = KEPT[batch][name]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-4
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )


@pytest.mark.parametrize("batch", KEPT)
def test_circle_has_their_value_and_if_wanted_their_gradient(batch):
    """Theirs takes the weights of the pairs as constants; Keras does not.

    Ours is by default the loss of Keras over all replicas.
    """
    labels, x = batches()[batch]
    value, gradient = value_and_gradient(
        losses.Circle(dtype="float64"), labels, x
    )
    wanted = KEPT[batch]["circle"]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert abs(gradient.numpy() - wanted["gradient"]).max() > 0.01 * largest
    paper = losses.Circle(constant_weights=True, dtype="float64")
    _, gradient = value_and_gradient(paper, labels, x)
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", ["ranked_list", "ranked_list_weighted"])
def test_ranked_list_is_theirs_but_for_what_theirs_adds_below(batch, name):
    """Theirs adds 1e-5 for each column to the sum of the weights.

    The smallest sum is that of one pair, 1, so ours is larger by at most that.
    Theirs differentiates the weights, too; equal weights have no derivative.
    """
    labels, x = batches()[batch]
    value, gradient = value_and_gradient(ours(name), labels, x)
    wanted = KEPT[batch][name]
    added = 1e-5 * len(labels)
    assert value >= wanted["value"]
    np.testing.assert_allclose(value, wanted["value"], rtol=added)
    largest = abs(wanted["gradient"]).max()
    difference = abs(gradient.numpy() - wanted["gradient"]).max()
    if name == "ranked_list":
        assert difference <= added * largest
    else:
        assert difference > 0.01 * largest


def test_self_retrieval_flatters_their_smooth_ap():
    labels, x = batches()["square"]
    own = losses.SmoothAP(temperature=0.1)(labels, x)
    assert own > KEPT["square"]["smooth_ap"]["value"]
