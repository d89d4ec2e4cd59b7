"""The peer's side of `loss_speed.py`: pytorch-metric-learning.

It runs in an environment of its own, made by
`pip install torch==2.13.0 pytorch-metric-learning==2.9.0`.
"""

import math
import os
from pathlib import Path

import numpy as np
import torch
from pytorch_metric_learning import distances, losses, miners
from sides import Steps, answer

# The class, the name of its weights, and its arguments.
PROXY_LOSSES = {
    "proxy_anchor": (losses.ProxyAnchorLoss, "proxies", {}),
    "proxynca_pp": (
        losses.ProxyNCALoss,
        "proxies",
        {"softmax_scale": 9.0},
    ),
    "norm_softmax": (
        losses.NormalizedSoftmaxLoss,
        "W",
        {"temperature": 0.05},
    ),
    "arcface": (losses.ArcFaceLoss, "W", {"margin": math.degrees(0.5)}),
    "soft_triple": (losses.SoftTripleLoss, "fc", {"centers_per_class": 10}),
}


# Their defaults are ours.
MINERS = {
    "miner_batch_easy_hard": miners.BatchEasyHardMiner(),
    "miner_batch_hard": miners.BatchHardMiner(),
    "miner_distance_weighted": miners.DistanceWeightedMiner(),
    "miner_hdc": miners.HDCMiner(),
    "miner_multi_similarity": miners.MultiSimilarityMiner(),
    "miner_pair_margin": miners.PairMarginMiner(),
    "miner_uniform_histogram": miners.UniformHistogramMiner(),
}


def of_unit_rows(miner):
    """It does not normalize the rows itself."""
    return lambda x, labels: miner(torch.nn.functional.normalize(x), labels)


def pair_loss(case):
    """The loss and its miner or `None`."""
    if case in MINERS:
        return losses.ContrastiveLoss(), MINERS[case]
    if case == "miner_triplet_margin":
        return losses.TripletMarginLoss(0.2), miners.TripletMarginMiner()
    if case == "miner_angular":
        miner = of_unit_rows(miners.AngularMiner())
        return losses.TripletMarginLoss(0.2), miner
    if case == "multi_similarity":
        return losses.MultiSimilarityLoss(), None
    if case == "contrastive":
        cosine = distances.CosineSimilarity()
        return losses.ContrastiveLoss(1.0, 0.5, distance=cosine), None
    if case == "contrastive_euclidean":
        return losses.ContrastiveLoss(), None
    if case == "triplet":
        return losses.TripletMarginLoss(margin=0.2), miners.TripletMarginMiner(
            margin=0.2, type_of_triplets="semihard"
        )
    if case == "margin_sampled":
        return losses.MarginLoss(), miners.DistanceWeightedMiner(
            cutoff=0.5, nonzero_loss_cutoff=1.4
        )
    if case == "margin_all":
        return losses.MarginLoss(), None
    if case == "lifted":
        return losses.LiftedStructureLoss(), None
    raise ValueError(f"There is no case {case!r}.")


def proxy_loss(case, proxies):
    """The loss with the given proxies, and its weights."""
    cls, name, arguments = PROXY_LOSSES[case]
    rows, dim = proxies.shape
    classes = rows // arguments.get("centers_per_class", 1)
    loss = cls(classes, dim, **arguments)
    weights = getattr(loss, name)
    # Some keep the proxies as columns.
    same = tuple(weights.shape) == proxies.shape
    with torch.no_grad():
        weights.copy_(torch.tensor(proxies if same else proxies.T))
    return loss, weights


def make_step(case, mode, arrays):
    x = torch.tensor(arrays[f"{case}/x"], requires_grad=True)
    labels = torch.tensor(arrays[f"{case}/labels"], dtype=torch.int64)
    miner, sources = None, [x]
    if case in PROXY_LOSSES:
        loss, weights = proxy_loss(case, arrays[f"{case}/proxies"])
        sources.append(weights)
    else:
        loss, miner = pair_loss(case)

    def step():
        chosen = miner(x, labels) if miner else None
        value = loss(x, labels, chosen)
        return value.detach(), *torch.autograd.grad(value, sources)

    return step


def peak_growth(step):
    """From the process as a whole, for torch does not count on processors."""
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return None
    clear.write_text("5")  # The peak starts anew.
    before = resident_bytes("VmRSS")
    step()
    return resident_bytes("VmHWM") - before


def resident_bytes(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise ValueError(f"The status of the process has no line {name!r}.")


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    answer(Steps(make_step, peak_growth))
