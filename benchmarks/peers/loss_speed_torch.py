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

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

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
    "cosface": (losses.CosFaceLoss, "W", {}),
    "large_margin_softmax": (
        losses.LargeMarginSoftmaxLoss,
        "W",
        {"margin": 3, "scale": 0.5},
    ),
    "manifold": (losses.ManifoldLoss, "proxies", {"margin": 0.1}),
    "p2s_grad": (losses.P2SGradLoss, "weight", {}),
    "sphereface": (losses.SphereFaceLoss, "W", {"margin": 4, "scale": 8.0}),
    "sub_center_arcface": (
        losses.SubCenterArcFaceLoss,
        "W",
        {"sub_centers": 3},
    ),
}


class ConstantWeights(losses.DynamicSoftMarginLoss):
    """Its gradient through the histogram breaks its second step."""

    def update_histogram(self, data):
        super().update_histogram(data.detach())


PAIR_LOSSES = {
    "circle": losses.CircleLoss(),
    "dynamic_soft_margin": ConstantWeights(),
    "fast_ap": losses.FastAPLoss(num_bins=10),
    "generalized_lifted": losses.GeneralizedLiftedStructureLoss(),
    "histogram": losses.HistogramLoss(n_bins=100),
    "intra_pair_variance": losses.IntraPairVarianceLoss(),
    "n_pair": losses.NPairsLoss(),
    "nca": losses.NCALoss(softmax_scale=3.0),
    "nt_xent": losses.NTXentLoss(temperature=0.1),
    "pnp": losses.PNPLoss(),
    "ranked_list": losses.RankedListLoss(margin=0.4, Tn=0, alpha=1.2),
    "signal_to_noise": losses.SignalToNoiseRatioContrastiveLoss(),
    "smooth_ap": losses.SmoothAPLoss(temperature=0.1),
    "supcon": losses.SupConLoss(temperature=0.1),
    "triplet_all": losses.TripletMarginLoss(margin=0.2),
    "tuplet_margin": losses.TupletMarginLoss(),
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
    """A miner or loss that does not normalize the rows itself."""
    return lambda x, labels, *_: miner(torch.nn.functional.normalize(x), labels)


def pair_loss(case):
    """The loss and its miner or `None`."""
    if case == "angular":
        # It normalizes anchors and positives, but not negatives.
        return of_unit_rows(losses.AngularLoss()), None
    if case == "instance":
        # Its labels are places in the batch: rows are their own classes.
        loss = losses.InstanceLoss(gamma=8)
        return lambda x, *_: loss(x, torch.arange(len(x))), None
    if case == "vicreg":
        # The first half of the rows are the first views.
        loss = losses.VICRegLoss()
        return lambda x, *_: loss(
            x[: len(x) // 2], ref_emb=x[len(x) // 2 :]
        ), None
    if case in PAIR_LOSSES:
        return PAIR_LOSSES[case], None
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
    centers = {"centers_per_class", "sub_centers"} & arguments.keys()
    classes = rows // (arguments[centers.pop()] if centers else 1)
    sizes = {"num_classes": classes, "embedding_size": dim}
    if case == "p2s_grad":
        sizes = {"num_classes": classes, "descriptors_dim": dim}
    if case == "manifold":
        sizes = {"K": classes, "l": dim}
    loss = cls(**sizes, **arguments).to(DEVICE)
    weights = getattr(loss, name)
    # Some keep the proxies as columns.
    same = tuple(weights.shape) == proxies.shape
    with torch.no_grad():
        weights.copy_(torch.from_numpy(proxies if same else proxies.T))
    if case == "sphereface":
        # It multiplies logits by the length of the embedding.
        return of_unit_rows(loss), weights
    if case == "manifold":
        # It draws the proxies of rows, unless they are given instead of pairs.
        return lambda x, labels, chosen: loss(x, None, labels), weights
    return loss, weights


def make_step(case, mode, arrays):
    x = torch.tensor(arrays[f"{case}/x"], device=DEVICE, requires_grad=True)
    labels = torch.tensor(arrays[f"{case}/labels"], device=DEVICE)
    miner, sources = None, [x]
    if case in PROXY_LOSSES:
        loss, weights = proxy_loss(case, arrays[f"{case}/proxies"])
        sources.append(weights)
    else:
        loss, miner = pair_loss(case)

    def step():
        chosen = miner(x, labels) if miner else None
        value = loss(x, labels, chosen)
        parts = value.detach(), *torch.autograd.grad(value, sources)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return parts

    return step


def peak_growth(step):
    """From the process as a whole, for torch does not count on processors."""
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return torch.cuda.max_memory_allocated() - before
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
    answer(Steps(make_step, peak_growth, lambda part: part.cpu()))
