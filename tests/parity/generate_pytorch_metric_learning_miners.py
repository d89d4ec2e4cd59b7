"""Writes `pytorch_metric_learning_miners.npz`: masks, values and gradients.

Run in an environment with `torch==2.13.0` and
`pytorch-metric-learning==2.9.0`:

    python generate_pytorch_metric_learning_miners.py
"""

from pathlib import Path

import numpy as np
import torch
from batches import batches
from pytorch_metric_learning import losses, miners

PAIRS = {
    "batch_hard": miners.BatchHardMiner(),
    "easy_semi_hard": miners.BatchEasyHardMiner(),
    "semi_hard_easy": miners.BatchEasyHardMiner("semihard", "easy"),
    "easy_hard": miners.BatchEasyHardMiner("easy", "hard"),
    "hard_easy": miners.BatchEasyHardMiner("hard", "easy"),
    "all_hard": miners.BatchEasyHardMiner("all", "hard"),
    "hdc": miners.HDCMiner(filter_percentage=0.5),
    "multi_similarity": miners.MultiSimilarityMiner(epsilon=0.1),
    "pair_margin": miners.PairMarginMiner(pos_margin=0.5, neg_margin=1.2),
}
TRIPLETS = {
    "angular": miners.AngularMiner(angle=35),
    **{
        f"triplet_margin_{kind}": miners.TripletMarginMiner(0.2, kind)
        for kind in ("all", "hard", "semihard", "easy")
    },
}
PAIR_LOSSES = {
    "contrastive": losses.ContrastiveLoss(),
    "intra_pair_variance": losses.IntraPairVarianceLoss(),
    "lifted": losses.GeneralizedLiftedStructureLoss(),
    "lifted_pairs": losses.LiftedStructureLoss(),
    "multi_similarity": losses.MultiSimilarityLoss(),
    "nt_xent": losses.NTXentLoss(temperature=0.1),
    "signal_to_noise": losses.SignalToNoiseRatioContrastiveLoss(),
    "supcon": losses.SupConLoss(temperature=0.1),
    "tuplet_margin": losses.TupletMarginLoss(),
}
TRIPLET_LOSSES = {
    "triplet": losses.TripletMarginLoss(margin=0.5),
    "triplet_swap": losses.TripletMarginLoss(margin=0.5, swap=True),
    "triplet_soft": losses.TripletMarginLoss(margin=0.0, smooth_loss=True),
}


def mask(size, rows, columns):
    found = np.zeros((size, size), bool)
    found[rows.numpy(), columns.numpy()] = True
    return np.packbits(found)


def chosen_by(miner, labels, x):
    """Theirs of angles alone does not normalize the rows."""
    rows = torch.nn.functional.normalize(torch.tensor(x))
    return miner(rows, torch.tensor(labels))


def main():
    torch.set_default_dtype(torch.float64)
    arrays = {}
    for batch, (labels, x) in batches().items():
        for found, of_them in (
            (PAIRS, PAIR_LOSSES),
            (TRIPLETS, TRIPLET_LOSSES),
        ):
            for name, miner in found.items():
                chosen = chosen_by(miner, labels, x)
                pairs = chosen
                if len(chosen) == 3:
                    pairs = (*chosen[:2], chosen[0], chosen[2])
                arrays[f"{batch}/{name}/positive"] = mask(len(x), *pairs[:2])
                arrays[f"{batch}/{name}/negative"] = mask(len(x), *pairs[2:])
                for key, loss in of_them.items():
                    rows = torch.tensor(x, requires_grad=True)
                    value = loss(rows, torch.tensor(labels), chosen)
                    value.backward()
                    kept = np.append(rows.grad.numpy(), value.detach().numpy())
                    arrays[f"{batch}/{name}/{key}"] = kept.astype("float32")
    path = Path(__file__).parent / "pytorch_metric_learning_miners.npz"
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
