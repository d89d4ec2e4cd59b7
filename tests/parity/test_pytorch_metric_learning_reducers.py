"""Ours against pytorch-metric-learning 2.9.0: averages of terms."""

import math
from pathlib import Path

import numpy as np
import pytest

from keras_dml import losses
from tests.losses.steps import value_and_gradient
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "pytorch_metric_learning_reducers.npz")
WEIGHTS = {"class_weights": [0.5, 2.0, 1.0, 0.0]}
AVERAGES = {
    "all": "all",
    "non_zero": "non_zero",
    "low": {"low": 0.2},
    "high": {"high": 0.6},
    "between": {"low": 0.1, "high": 0.7},
    "per_anchor": {"per_anchor": True},
    "per_anchor_low": {"per_anchor": True, "low": 0.3},
    "class_weights": WEIGHTS,
    "per_anchor_class_weights": {"per_anchor": True, **WEIGHTS},
}
LOSSES = {
    "contrastive": (
        losses.Contrastive,
        {"form": "euclidean", "positive_margin": 0.2, "negative_margin": 1.2},
    ),
    "nt_xent": (losses.NTXent, {"temperature": 0.5}),
    "intra_pair_variance": (losses.IntraPairVariance, {}),
    "supcon": (losses.SupCon, {"temperature": 0.5}),
    "nca": (losses.NCA, {}),
    "triplet": (
        losses.Triplet,
        {"margin": 0.5, "mining": "all", "distance": "euclidean"},
    ),
    "lifted_pairs": (losses.LiftedStructure, {"form": "pairs", "margin": 0.1}),
    "multi_similarity": (losses.MultiSimilarity, {}),
    "tuplet_margin": (
        losses.TupletMargin,
        {"margin": math.radians(5.73), "scale": 2.0},
    ),
}


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("choice", KEPT["uneven"])
def test_values_and_gradients(batch, choice):
    labels, x = batches()[batch]
    average, name = choice.split("-")
    cls, arguments = LOSSES[name]
    loss = cls(**arguments, average=AVERAGES[average], dtype="float64")
    value, gradient = value_and_gradient(loss, labels, x)
    wanted = KEPT[batch][choice]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * max(largest, 1e-3)
    )


def test_only_bounds_without_a_term_give_zeros():
    zero = {
        f"{batch}/{choice}"
        for batch, kept in KEPT.items()
        for choice, results in kept.items()
        if not np.any(results["gradient"])
    }
    assert len(zero) < 0.2 * sum(map(len, KEPT.values()))
    bounds = ("low", "high", "between")
    assert all(any(bound in one for bound in bounds) for one in zero)
