"""Our side of `loss_speed.py`, and the bare products that are its floor."""

import math
import os

import keras
import numpy as np
import tensorflow as tf
from sides import Steps, answer

from keras_dml import losses, miners
from keras_dml.layers import (
    ClassBoundaries,
    ManifoldSimilarities,
    Proxies,
    ScaledLogits,
)

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
    return lambda x, labels: loss(labels, scaled(layer(x))), [
        layer.proxies.value
    ]


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
    return lambda x, labels: loss(labels, layer([x, labels], training=True)), []


def make_step(case, mode, arrays):
    x = tf.constant(arrays[f"{case}/x"])
    if mode == "floor":
        return floor(case, x, arrays)
    labels = arrays[f"{case}/labels"]
    if case in PROXY_LOSSES:
        model, weights = proxy_model(case, arrays[f"{case}/proxies"])
    else:
        model, weights = pair_model(case, labels)
    labels = tf.constant(labels)

    @tf.function(jit_compile=mode == "xla")
    def step(x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = model(x, labels)
        return value, *tape.gradient(value, [x, *weights])

    return lambda: step(x, labels)


def floor(case, x, arrays):
    """The products that no way to the loss and its gradients is without."""
    columns = arrays[f"{case}/proxies"] if case in PROXY_LOSSES else x
    columns = tf.constant(columns)
    gradient = tf.random.uniform((len(x), len(columns)))

    @tf.function
    def products(x, columns, gradient):
        both = (
            tf.matmul(x, columns, transpose_b=True),
            tf.matmul(gradient, columns),
        )
        if case in PAIR_LOSSES:
            return both
        return *both, tf.matmul(gradient, x, transpose_a=True)

    return lambda: products(x, columns, gradient)


def peak_growth(step):
    """From TensorFlow's own count of its tensors, inside of XLA too.

    `None` on processors where TensorFlow counts nothing, such as AMD's.
    """
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
    except ValueError:
        return None
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    step()
    return tf.config.experimental.get_memory_info("CPU:0")["peak"] - before


if __name__ == "__main__":
    # It warns of functions made anew, one a case.
    tf.get_logger().setLevel("ERROR")
    threads = int(os.environ["OMP_NUM_THREADS"])
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    keras.utils.set_random_seed(0)
    answer(Steps(make_step, peak_growth))
