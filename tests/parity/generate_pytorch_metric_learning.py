"""Writes `pytorch_metric_learning.npz`: values and gradients of its losses.

Run in an environment with `torch==2.13.0` and
`pytorch-metric-learning==2.9.0`:

    python generate_pytorch_metric_learning.py
"""

from pathlib import Path

import numpy as np
import torch
from batches import batches
from pytorch_metric_learning import distances, losses, miners


def some_triplets(labels):
    """For each row its two positives or more, and as many negatives."""
    triplets = []
    for a, label in enumerate(labels):
        positives = [
            j for j in np.flatnonzero(labels == label).tolist() if j != a
        ]
        negatives = np.flatnonzero(labels != label).tolist()
        triplets += [
            (a, p, n) for p, n in zip(positives, negatives, strict=False)
        ]
    return tuple(torch.tensor(column) for column in zip(*triplets, strict=True))


def named_losses():
    """Pairs of a loss and a miner, by name."""
    cosine = distances.CosineSimilarity()
    return {
        "contrastive": (losses.ContrastiveLoss(), None),
        "contrastive_cosine": (
            losses.ContrastiveLoss(
                pos_margin=1.0, neg_margin=0.5, distance=cosine
            ),
            None,
        ),
        "multi_similarity": (losses.MultiSimilarityLoss(), None),
        "multi_similarity_mined": (
            losses.MultiSimilarityLoss(),
            miners.MultiSimilarityMiner(epsilon=0.1),
        ),
        "triplet_semi_hard": (
            losses.TripletMarginLoss(margin=0.2),
            miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard"),
        ),
        "triplet_hard": (
            losses.TripletMarginLoss(margin=0.2),
            miners.BatchHardMiner(),
        ),
        "triplet_easy": (
            losses.TripletMarginLoss(margin=0.2),
            miners.BatchEasyHardMiner(pos_strategy="easy", neg_strategy="hard"),
        ),
        "lifted_structure": (losses.LiftedStructureLoss(), None),
        "generalized_lifted_structure": (
            losses.GeneralizedLiftedStructureLoss(),
            None,
        ),
        "n_pairs": (losses.NPairsLoss(), None),
        "margin": (losses.MarginLoss(), "triplets"),
        "nt_xent": (losses.NTXentLoss(temperature=0.1), None),
        "sup_con": (losses.SupConLoss(temperature=0.1), None),
        "smooth_ap": (losses.SmoothAPLoss(temperature=0.1), None),
        "circle": (losses.CircleLoss(), None),
    }


def main():
    torch.set_default_dtype(torch.float64)
    arrays = {}
    for batch, (labels, x) in batches().items():
        for name, (loss, miner) in named_losses().items():
            # It takes rows sorted by class, and mistakes the number of classes
            # for the size of a class: both must be equal.
            if name == "smooth_ap" and batch != "square":
                continue
            rows = torch.tensor(x, requires_grad=True)
            classes = torch.tensor(labels)
            if miner == "triplets":
                chosen = some_triplets(labels)
            else:
                chosen = miner(rows, classes) if miner else None
            value = loss(rows, classes, chosen)
            (gradient,) = torch.autograd.grad(value, rows)
            arrays[f"{batch}/{name}/value"] = value.detach().numpy()
            arrays[f"{batch}/{name}/gradient"] = gradient.numpy()
    path = Path(__file__).with_name("pytorch_metric_learning.npz")
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
