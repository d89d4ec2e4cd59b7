"""Writes three `pytorch_metric_learning*.npz`: values and gradients.

Run in an environment with `torch==2.13.0` and
`pytorch-metric-learning==2.9.0`:

    python generate_pytorch_metric_learning.py
"""

from pathlib import Path

import numpy as np
import torch
from batches import CLASSES, batches, proxies
from pytorch_metric_learning import distances, losses, miners, regularizers


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


def two_views(rows, classes, chosen):
    """The first half of the rows are the second views of the others."""
    loss = losses.SelfSupervisedLoss(losses.NTXentLoss(temperature=0.1))
    half = len(rows) // 2
    return loss(rows[:half], rows[half:])


def vicreg(rows, classes, chosen):
    """The first half of the rows are the first views."""
    half = len(rows) // 2
    return losses.VICRegLoss()(rows[:half], ref_emb=rows[half:])


def angular(rows, classes, chosen):
    """It normalizes anchors and positives, but not negatives."""
    return losses.AngularLoss()(torch.nn.functional.normalize(rows), classes)


def instance(rows, classes, chosen):
    """Labels are places in the batch there: each row is a class of its own."""
    return losses.InstanceLoss(gamma=8)(rows, torch.arange(len(rows)))


class ConstantWeights(losses.DynamicSoftMarginLoss):
    """Its gradient through the histogram breaks its second step."""

    def update_histogram(self, data):
        super().update_histogram(data.detach())


def pair_losses():
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
        "nca": (losses.NCALoss(softmax_scale=3.0), None),
        "threshold_consistent": (losses.ThresholdConsistentMarginLoss(), None),
        "threshold_consistent_weighted": (
            losses.ThresholdConsistentMarginLoss(0.5, 2.0),
            None,
        ),
        # It has no place for a difference in its last bin: half are empty.
        "dynamic_soft_margin": (ConstantWeights(-4.0, num_bins=16), None),
        "instance": (instance, None),
        "tuplet_of_no_margin": (
            losses.TupletMarginLoss(margin=0, scale=10),
            None,
        ),
        "multiple": (
            losses.MultipleLosses(
                [losses.SupConLoss(), losses.MultiSimilarityLoss()],
                weights=[0.5, 2.0],
            ),
            None,
        ),
        "two_views": (two_views, None),
        "vicreg": (vicreg, None),
        "triplet_all": (losses.TripletMarginLoss(margin=0.2), None),
        "triplet_swap": (
            losses.TripletMarginLoss(margin=0.2, swap=True),
            None,
        ),
        "triplet_smooth": (
            losses.TripletMarginLoss(margin=0.0, smooth_loss=True),
            None,
        ),
        "angular": (angular, None),
        "fast_ap": (losses.FastAPLoss(num_bins=10), None),
        "histogram": (losses.HistogramLoss(n_bins=20), None),
        "intra_pair_variance": (losses.IntraPairVarianceLoss(), None),
        **{
            f"pnp_{variant.lower()}": (
                losses.PNPLoss(b=3, alpha=4, anneal=0.1, variant=variant),
                None,
            )
            for variant in losses.PNPLoss.VARIANTS
        },
        "ranked_list": (
            losses.RankedListLoss(margin=0.4, Tn=0, alpha=1.2),
            None,
        ),
        "ranked_list_weighted": (
            losses.RankedListLoss(margin=0.4, Tn=4, alpha=1.2, Tp=1),
            None,
        ),
        "signal_to_noise": (losses.SignalToNoiseRatioContrastiveLoss(), None),
        "tuplet_margin": (losses.TupletMarginLoss(), None),
    }


def proxy_losses(dim):
    """Losses that own proxies, by name."""
    sizes = {"num_classes": CLASSES, "embedding_size": dim}
    centers = regularizers.SparseCentersRegularizer(CLASSES, 3)
    return {
        "proxy_anchor": losses.ProxyAnchorLoss(**sizes),
        "proxy_nca": losses.ProxyNCALoss(**sizes),
        "proxy_nca_scaled": losses.ProxyNCALoss(**sizes, softmax_scale=9.0),
        "normalized_softmax": losses.NormalizedSoftmaxLoss(**sizes),
        "arc_face": losses.ArcFaceLoss(**sizes),
        # Most rows lie farther than 60 degrees from their proxy.
        "arc_face_wide": losses.ArcFaceLoss(**sizes, margin=120.0, scale=8.0),
        "cos_face": losses.CosFaceLoss(**sizes),
        "sub_center_arc_face": losses.SubCenterArcFaceLoss(
            **sizes, sub_centers=3
        ),
        "soft_triple": losses.SoftTripleLoss(**sizes, centers_per_class=3),
        "soft_triple_regularized": losses.SoftTripleLoss(
            **sizes,
            centers_per_class=3,
            weight_regularizer=centers,
            weight_reg_weight=0.2,
        ),
        "sphere_face": losses.SphereFaceLoss(**sizes, margin=4, scale=8.0),
        "large_margin_softmax": losses.LargeMarginSoftmaxLoss(
            **sizes, margin=3, scale=0.5
        ),
        "p2s_grad": losses.P2SGradLoss(dim, CLASSES),
        "manifold": losses.ManifoldLoss(dim, K=CLASSES, margin=0.1),
    }


def memory_losses():
    """Losses that take a memory, by name."""
    return {
        "contrastive": losses.ContrastiveLoss(),
        "multi_similarity": losses.MultiSimilarityLoss(),
        "nt_xent": losses.NTXentLoss(temperature=0.1),
        "sup_con": losses.SupConLoss(temperature=0.1),
    }


def with_gradients(value, **inputs):
    """The value and the gradient by each of the inputs, as arrays."""
    found = torch.autograd.grad(value, list(inputs.values()))
    return {"value": value.detach().numpy()} | {
        name: gradient.numpy()
        for name, gradient in zip(inputs, found, strict=True)
    }


def of_pairs(batch, labels, x):
    """Results of the losses on pairs."""
    for name, (loss, miner) in pair_losses().items():
        rows = torch.tensor(x, requires_grad=True)
        classes = torch.tensor(labels)
        # It takes rows sorted by class, and mistakes the number of classes
        # for the size of a class: both must be equal.
        if name == "smooth_ap" and batch != "square":
            continue
        if miner == "triplets":
            chosen = some_triplets(labels)
        else:
            chosen = miner(rows, classes) if miner else None
        yield name, with_gradients(loss(rows, classes, chosen), gradient=rows)


def of_proxies(batch, labels, x):
    """Results of the losses that own proxies."""
    for name, loss in proxy_losses(x.shape[1]).items():
        ((parameter, weights),) = loss.named_parameters()
        centers = weights.numel() // (CLASSES * x.shape[1])
        weights.data = torch.tensor(proxies(x.shape[1], centers))
        if parameter != "proxies":
            weights.data = weights.data.T.contiguous()
        rows = torch.tensor(x, requires_grad=True)
        # It multiplies logits by the length of the embedding.
        normalize = name == "sphere_face"
        x_or_unit = torch.nn.functional.normalize(rows) if normalize else rows
        classes = torch.tensor(labels)
        # It draws the proxies of rows, unless they are given instead of pairs.
        given = (None, classes) if name == "manifold" else (classes,)
        value = loss(x_or_unit, *given)
        yield name, with_gradients(value, gradient=rows, proxies=weights)


def of_memory(batch, labels, x):
    """Four steps of four rows; the memory holds six.

    `before` compares with the rows of earlier batches alone, `with` with
    these and the batch itself, as their loss does by default.
    """
    if batch != "shuffled":
        return
    for name, loss in memory_losses().items():
        for kind in ("before", "with"):
            memory = losses.CrossBatchMemory(loss, x.shape[1], memory_size=6)
            for step in range(1 if kind == "before" else 0, 4):
                now, past = (slice(4 * s, 4 * s + 4) for s in (step, step - 1))
                rows = torch.tensor(x[now], requires_grad=True)
                classes = torch.tensor(labels[now])
                if kind == "with":
                    value = memory(rows, classes)
                else:
                    value = memory(
                        torch.cat([rows, torch.tensor(x[past])]),
                        torch.cat([classes, torch.tensor(labels[past])]),
                        enqueue_mask=torch.arange(8) >= 4,
                    )
                yield (
                    f"{name}-{kind}-{step}",
                    with_gradients(value, gradient=rows),
                )


def main():
    torch.set_default_dtype(torch.float64)
    folder = Path(__file__).parent
    for kind, function in (
        ("", of_pairs),
        ("_proxies", of_proxies),
        ("_memory", of_memory),
    ):
        arrays = {}
        for batch, (labels, x) in batches().items():
            for name, results in function(batch, labels, x):
                for what, array in results.items():
                    arrays[f"{batch}/{name}/{what}"] = array
        path = folder / f"pytorch_metric_learning{kind}.npz"
        np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
