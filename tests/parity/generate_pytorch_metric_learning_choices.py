"""Writes `pytorch_metric_learning_{distances,reducers}.npz`.

Run in an environment with `torch==2.13.0` and
`pytorch-metric-learning==2.9.0`:

    python generate_pytorch_metric_learning_choices.py
"""

from pathlib import Path

import numpy as np
import torch
from batches import batches
from pytorch_metric_learning import distances, losses, reducers

BATCHES = ("clustered", "shuffled", "uneven")
AS_THEY_ARE = {"normalize_embeddings": False}
DISTANCES = {
    "cosine": distances.CosineSimilarity(),
    "dot": distances.DotProductSimilarity(**AS_THEY_ARE),
    **{
        f"l{p}": distances.LpDistance(p=p, **AS_THEY_ARE)
        for p in (1, 1.5, 2, 3)
    },
    "squared_euclidean": distances.LpDistance(power=2, **AS_THEY_ARE),
    "signal_to_noise": distances.SNRDistance(**AS_THEY_ARE),
}
REDUCERS = {
    "all": reducers.MeanReducer(),
    "non_zero": reducers.AvgNonZeroReducer(),
    "low": reducers.ThresholdReducer(low=0.2),
    "high": reducers.ThresholdReducer(high=0.6),
    "between": reducers.ThresholdReducer(low=0.1, high=0.7),
    "per_anchor": reducers.PerAnchorReducer(),
    "per_anchor_low": reducers.PerAnchorReducer(
        reducers.ThresholdReducer(low=0.3)
    ),
    "class_weights": reducers.ClassWeightedReducer(
        torch.tensor([0.5, 2.0, 1.0, 0.0])
    ),
    "per_anchor_class_weights": reducers.PerAnchorReducer(
        reducers.ClassWeightedReducer(torch.tensor([0.5, 2.0, 1.0, 0.0]))
    ),
}


def of_distance(distance):
    """The losses that compare by a distance, by name."""
    margins = (1.0, 0.5) if distance.is_inverted else (0.5, 3.0)
    both = {"pos_margin": margins[0], "neg_margin": margins[1]}
    given = {"distance": distance}
    return {
        "contrastive": losses.ContrastiveLoss(**both, **given),
        "triplet": losses.TripletMarginLoss(margin=0.5, **given),
        "triplet_swap": losses.TripletMarginLoss(0.5, swap=True, **given),
        "multi_similarity": losses.MultiSimilarityLoss(2, 10, 0.5, **given),
        "nt_xent": losses.NTXentLoss(temperature=0.5, **given),
        "supcon": losses.SupConLoss(temperature=0.5, **given),
        "nca": losses.NCALoss(**given),
        "n_pair": losses.NPairsLoss(**given),
        "lifted": losses.GeneralizedLiftedStructureLoss(1, 0, **given),
        "lifted_pairs": losses.LiftedStructureLoss(1, 0, **given),
    }


def of_reducer(reducer):
    """The losses that a reducer averages, by name."""
    given = {"reducer": reducer}
    found = {
        "contrastive": losses.ContrastiveLoss(0.2, 1.2, **given),
        "nt_xent": losses.NTXentLoss(temperature=0.5, **given),
        "intra_pair_variance": losses.IntraPairVarianceLoss(**given),
        "supcon": losses.SupConLoss(temperature=0.5, **given),
        "nca": losses.NCALoss(**given),
    }
    by_anchor = isinstance(reducer, reducers.PerAnchorReducer)
    # They average no triplets by anchor.
    if not by_anchor:
        found["triplet"] = losses.TripletMarginLoss(margin=0.5, **given)
    # Of these their terms are a column, which weights would make a matrix.
    if not by_anchor and not hasattr(reducer, "weights"):
        found |= {
            "lifted_pairs": losses.LiftedStructureLoss(0.1, 0, **given),
            "multi_similarity": losses.MultiSimilarityLoss(**given),
            "tuplet_margin": losses.TupletMarginLoss(scale=2, **given),
        }
    return found


def main():
    torch.set_default_dtype(torch.float64)
    for kind, choices, of_choice in (
        ("distances", DISTANCES, of_distance),
        ("reducers", REDUCERS, of_reducer),
    ):
        arrays = {}
        for batch in BATCHES:
            labels, x = batches()[batch]
            for choice, given in choices.items():
                for name, loss in of_choice(given).items():
                    rows = torch.tensor(x, requires_grad=True)
                    value = loss(rows, torch.tensor(labels))
                    (gradient,) = torch.autograd.grad(value, [rows])
                    key = f"{batch}/{choice}-{name}"
                    arrays[f"{key}/value"] = value.detach().numpy()
                    arrays[f"{key}/gradient"] = gradient.float().numpy()
        name = f"pytorch_metric_learning_{kind}.npz"
        np.savez_compressed(Path(__file__).parent / name, **arrays)


if __name__ == "__main__":
    main()
