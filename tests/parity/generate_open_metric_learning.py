"""Writes `open_metric_learning.npz`: values and gradients.

Run in an environment with `open-metric-learning==4.0.0`:

    python generate_open_metric_learning.py
"""

from pathlib import Path

import numpy as np
import torch
from batches import CLASSES, batches, proxies
from oml.losses import (
    ArcFaceLoss,
    TripletLossPlain,
    TripletLossWithMiner,
)
from oml.miners import AllTripletsMiner, HardTripletsMiner, NHardTripletsMiner

MINERS = {
    "all": AllTripletsMiner(),
    "hard": HardTripletsMiner(),
    "n_hard_of_one": NHardTripletsMiner(n_positive=1, n_negative=1),
}


def losses(dim):
    """Functions of rows and labels, by name."""
    arcface = ArcFaceLoss(dim, CLASSES)
    arcface.weight.data = torch.tensor(proxies(dim))
    return {
        **{
            f"triplet_{name}{'' if margin else '_soft'}": TripletLossWithMiner(
                margin, miner
            )
            for name, miner in MINERS.items()
            for margin in (0.2, None)
        },
        "triplet_plain": lambda rows, labels: TripletLossPlain(0.2)(
            rows[: len(rows) // 3 * 3]
        ),
        "arc_face": arcface,
    }


def main():
    torch.set_default_dtype(torch.float64)
    arrays = {}
    for batch, (labels, x) in batches().items():
        for name, loss in losses(x.shape[1]).items():
            rows = torch.tensor(x, requires_grad=True)
            value = loss(rows, torch.tensor(labels))
            (gradient,) = torch.autograd.grad(value, [rows])
            arrays[f"{batch}/{name}/value"] = value.detach().numpy()
            arrays[f"{batch}/{name}/gradient"] = gradient.numpy()
    path = Path(__file__).with_name("open_metric_learning.npz")
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
