"""Our side of `loss_speed.py`, and the bare products that are its floor.

The backend is that of Keras: TensorFlow on processors, JAX or PyTorch on a GPU.
"""

import importlib
import math

import keras
import numpy as np
from sides import Steps, answer

from keras_dml import losses, miners
from keras_dml.layers import (
    ClassBoundaries,
    ManifoldSimilarities,
    Proxies,
    ScaledLogits,
)

BACKEND = importlib.import_module(f"steps_{keras.backend.backend()}")

# The loss, the arguments of its proxies, and the scale of its logits.
PROXY_LOSSES = {
    "proxy_anchor": (losses.ProxyAnchor(), {}, None),
    "proxynca_pp": (
        losses.ProxyNCAPlusPlus(),
        {"metric": "neg_squared_euclidean"},
        9.0,
    ),
    "norm_softmax": (losses.NormalizedSoftmax(), {}, 20.0),
    "arcface": (losses.ArcFace(), {}, None),
    "soft_triple": (losses.SoftTriple(), {"centers": 10}, None),
    "cosface": (losses.CosFace(), {}, None),
    "large_margin_softmax": (
        losses.LargeMarginSoftmax(margin=3, scale=0.5),
        {"metric": "dot", "unit_proxies": False, "lengths": True},
        None,
    ),
    "manifold": (losses.Manifold(margin=0.1), {}, None),
    "p2s_grad": (losses.P2SGrad(), {}, None),
    "sphereface": (losses.SphereFace(scale=8.0), {}, None),
    "sub_center_arcface": (
        losses.SubCenterArcFace(margin=math.radians(28.6)),
        {"centers": 3},
        None,
    ),
}

PAIR_LOSSES = {
    "multi_similarity": losses.MultiSimilarity(),
    "contrastive": losses.Contrastive(),
    "contrastive_euclidean": losses.Contrastive(form="euclidean"),
    "triplet": losses.Triplet(
        margin=0.2, mining="all_semi_hard", distance="euclidean"
    ),
    "margin_sampled": losses.Margin(),
    "margin_all": losses.Margin(sampling="all"),
    "lifted": losses.LiftedStructure(form="pairs", margin=1.0),
    "angular": losses.Angular(math.radians(40.0)),
    "circle": losses.Circle(),
    "dynamic_soft_margin": losses.DynamicSoftMargin(),
    "fast_ap": losses.FastAP(),
    "generalized_lifted": losses.LiftedStructure(form="distance", margin=1.0),
    "histogram": losses.Histogram(bins=100),
    "instance": losses.Instance(scale=8.0),
    "intra_pair_variance": losses.IntraPairVariance(),
    "n_pair": losses.NPair(l2=0.0, normalize=True),
    "nca": losses.NCA(temperature=1 / 3),
    "nt_xent": losses.NTXent(),
    "pnp": losses.PNP(),
    "ranked_list": losses.RankedList(negative_scale=0.0),
    "signal_to_noise": losses.SignalToNoise(),
    "smooth_ap": losses.SmoothAP(temperature=0.1),
    "supcon": losses.SupCon(),
    "triplet_all": losses.Triplet(0.2, "all", "euclidean"),
    "tuplet_margin": losses.TupletMargin(margin=math.radians(5.73)),
    "vicreg": losses.VICReg(),
    **{
        f"miner_{key}": losses.Contrastive(form="euclidean", miner=key)
        for key in miners.MINERS
        if not issubclass(miners.MINERS[key], miners.TripletMiner)
    },
    **{
        f"miner_{key}": losses.Triplet(0.2, "all", "euclidean", miner=key)
        for key in ("angular", "triplet_margin")
    },
}


def proxy_model(case, proxies):
    """The loss of embeddings, and the weights before it."""
    loss, options, scale = PROXY_LOSSES[case]
    rows, dim = proxies.shape
    classes = rows // options.get("centers", 1)
    layer = (
        ManifoldSimilarities(classes)
        if case == "manifold"
        else Proxies(classes, **options)
    )
    layer.build((None, dim))
    layer.proxies.assign(proxies.reshape(layer.proxies.shape))
    scaled = ScaledLogits(scale) if scale else lambda similarity: similarity
    return lambda x, labels: loss(labels, scaled(layer(x))), [layer.proxies]


def pair_model(case, labels):
    """The loss of embeddings, and no weights."""
    loss = PAIR_LOSSES[case]
    if case in ("instance", "vicreg"):
        # Without labels: rows are their own classes, or those of two views.
        views = 1 if case == "instance" else 2
        rows = np.tile(np.arange(len(labels) // views), views)
        return lambda x, labels: loss(rows, x), []
    if not isinstance(loss, losses.Margin):
        return lambda x, labels: loss(labels, x), []
    # The peer does not learn its boundary either.
    layer = ClassBoundaries(int(labels.max()) + 1)
    layer.build([(None, None), (None,)])
    return lambda x, labels: loss(labels, layer([x, labels], training=True)), []


def products(case):
    """The products that no way to the loss and its gradients is without."""

    def floor(x, columns, gradient):
        both = (
            keras.ops.matmul(x, keras.ops.transpose(columns)),
            keras.ops.matmul(gradient, columns),
        )
        if case in PAIR_LOSSES:
            return both
        return *both, keras.ops.matmul(keras.ops.transpose(gradient), x)

    return floor


def make_step(case, mode, arrays):
    x = keras.ops.convert_to_tensor(arrays[f"{case}/x"])
    if mode == "floor":
        columns = x
        if case in PROXY_LOSSES:
            columns = keras.ops.convert_to_tensor(arrays[f"{case}/proxies"])
        gradient = keras.random.uniform((len(x), len(columns)))
        return BACKEND.floor(products(case), x, columns, gradient)
    labels = arrays[f"{case}/labels"]
    if case in PROXY_LOSSES:
        model, weights = proxy_model(case, arrays[f"{case}/proxies"])
    else:
        model, weights = pair_model(case, labels)
    labels = keras.ops.convert_to_tensor(labels)
    return BACKEND.step(model, x, labels, weights, mode)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    answer(Steps(make_step, BACKEND.peak_growth, keras.ops.convert_to_numpy))
