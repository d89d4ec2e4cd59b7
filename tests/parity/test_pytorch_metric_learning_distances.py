"""Ours against pytorch-metric-learning 2.9.0: what compares two rows."""

from pathlib import Path

import numpy as np
import pytest

from keras_dml import losses
from keras_dml.ops.distances import is_distance
from tests.losses.steps import value_and_gradient
from tests.parity.batches import batches, load

KEPT = load(Path(__file__).parent, "pytorch_metric_learning_distances.npz")


def ours(metric, name):
    distance = is_distance(metric)
    pull, push = (0.5, 3.0) if distance else (1.0, 0.5)
    all_triplets = {"margin": 0.5, "mining": "all"}
    cls, arguments = {
        "contrastive": (
            losses.Contrastive,
            {"positive_margin": pull, "negative_margin": push},
        ),
        "triplet": (losses.Triplet, all_triplets),
        "triplet_swap": (losses.Triplet, {**all_triplets, "swap": True}),
        # Their base is a distance where they compare by one.
        "multi_similarity": (
            losses.MultiSimilarity,
            {"beta": 10.0, "base": -0.5 if distance else 0.5},
        ),
        "nt_xent": (losses.NTXent, {"temperature": 0.5}),
        "supcon": (losses.SupCon, {"temperature": 0.5}),
        "nca": (losses.NCA, {}),
        "n_pair": (losses.NPair, {"l2": 0.0}),
        # Theirs is the margin of negatives minus that of positives, of
        # similarities the other way round.
        "lifted": (
            losses.LiftedStructure,
            {"margin": 1.0 if distance else -1.0},
        ),
        "lifted_pairs": (
            losses.LiftedStructure,
            {"form": "pairs", "margin": 1.0 if distance else -1.0},
        ),
    }[name]
    # Theirs divides by the p-norm, ours by the length: neither does here.
    return cls(
        **arguments,
        similarity=metric,
        normalize=metric == "cosine",
        dtype="float64",
    )


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("choice", KEPT["uneven"])
def test_values_and_gradients(batch, choice):
    labels, x = batches()[batch]
    metric, name = choice.split("-")
    value, gradient = value_and_gradient(ours(metric, name), labels, x)
    wanted = KEPT[batch][choice]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-4
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )
