"""Writes `tensorflow_similarity.npz`: values and gradients of its losses.

Run in the environment of `generate_tensorflow_addons.py`, with
`tensorflow_similarity==0.17.1` installed without what it requires (`pip
install --no-deps`), which its losses do not use:

    python generate_tensorflow_similarity.py
"""

import importlib.util
import sys
import types
from pathlib import Path

import tensorflow_results


def import_losses():
    """Its losses without the rest of it, which needs compiled indices."""
    name = "tensorflow_similarity"
    package = types.ModuleType(name)
    package.__path__ = importlib.util.find_spec(name).submodule_search_locations
    sys.modules[name] = package
    return importlib.import_module(f"{name}.losses")


def triplets(losses):
    """The loss by the names of the positive, of the negative, and margin."""
    return {
        f"triplet_{positive}_{negative}_{margin}": losses.TripletLoss(
            positive_mining_strategy=positive,
            negative_mining_strategy=negative,
            margin=margin,
        )
        for positive in ("hard", "easy")
        for negative in ("hard", "semi-hard")
        for margin in (None, 0.3)
    }


def two_views(loss):
    """Of a loss on the rows of one view and those of the other."""

    def function(labels, x):
        half = len(labels) // 2
        return loss(x[:half], x[half:])

    return function


def named_losses(losses):
    """Functions of labels and embeddings, by name."""
    return triplets(losses) | {
        "multi_similarity": losses.MultiSimilarityLoss(),
        "circle": losses.CircleLoss(),
        "soft_nearest_neighbor": losses.SoftNearestNeighborLoss(
            temperature=0.5
        ),
        "multiple_negatives_rank": two_views(losses.MultiNegativesRankLoss()),
        "sim_clr": two_views(losses.SimCLRLoss(temperature=0.1)),
    }


if __name__ == "__main__":
    tensorflow_results.write(
        Path(__file__).with_name("tensorflow_similarity.npz"),
        named_losses(import_losses()),
        # They expect rows of length one.
        unit=lambda name: True,
    )
