"""One table of losses: what each is made with, and the loops that it equals.

The files of laws hold every case to every law. A new loss needs an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_dml import layers, losses
from keras_dml.models import HeadOptions
from tests.losses import naive_pair_losses as pairs
from tests.losses import naive_proxy_losses as proxies
from tests.losses.naive_weighted_exponents import join
from tests.miners.naive import distance_weighted

CLASSES = 4
# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")
# Batches that lack something.
BATCHES = {
    "mixed": LABELS,
    "one class": np.full(6, 2, "int32"),
    "one row": np.array([1], "int32"),
    "no two rows of a class": np.arange(4, dtype="int32"),
}
BOUNDARIES = np.array([1.0, 1.3, 1.2, 0.9])


def embeddings(labels):
    return np.random.default_rng(0).standard_normal((len(labels), 5))


def logits(labels):
    return 3 * np.random.default_rng(0).standard_normal((len(labels), CLASSES))


def cosines(labels, centers=1):
    """Similarities of unit vectors, so that they are what losses meet."""
    rows = len(labels)
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 5))
    p = rng.standard_normal((CLASSES, centers, 5))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    p /= np.linalg.norm(p, axis=-1, keepdims=True)
    values = np.einsum("id,ckd->ick", x, p)
    return values if centers > 1 else values[:, :, 0]


def products_and_lengths(labels):
    values = cosines(labels)
    lengths = np.random.default_rng(3).uniform(0.5, 2, values.shape)
    return np.stack([lengths * values, lengths], axis=2)


def ends_of_walks(labels):
    shape = (len(labels), CLASSES, 2)
    return np.random.default_rng(5).uniform(0.0, 1.0, shape)


def cosines_of_centers(labels):
    return cosines(labels, centers=3)


def weights(labels):
    shape = (len(labels), CLASSES)
    return np.random.default_rng(1).uniform(0.01, 2, shape)


def exponents(labels):
    return join(labels, cosines(labels), weights(labels), 8.0, 0.2)


def with_memory(labels):
    column = np.random.default_rng(2).uniform(0.0, 2.0, (len(labels), 1))
    return np.concatenate([embeddings(labels), column], axis=1)


def with_boundaries(labels, step=3.0):
    rows = embeddings(labels)
    columns = [BOUNDARIES[labels][:, None], np.full((len(labels), 1), step)]
    return np.concatenate([rows, *columns], axis=1)


def with_predictions(labels):
    rows = np.random.default_rng(3).standard_normal((len(labels), 5))
    return np.concatenate([rows, embeddings(labels)], axis=1)


def of_pairs(loop):
    """A loop over masks of pairs, as one over labels."""
    return lambda labels, x, **arguments: loop(
        *pairs.masks(labels), x, **arguments
    )


def proxy_isa(labels, x):
    s, w = cosines(labels), weights(labels)
    return proxies.proxy_isa(labels, np.stack([s, w], axis=1), 8.0, 0.2)


def proxynca_isa(labels, x):
    return proxies.proxynca_isa(
        labels, cosines(labels), weights(labels), 8, 0.2
    )


def sum_of_two(labels, x, losses, weights):
    masks = pairs.masks(labels)
    return 2.0 * pairs.triplet(*masks, x, margin=0.5) + 0.5 * pairs.contrastive(
        *masks, x
    )


def loss_and_memory(labels, x, loss):
    loss = pairs.multi_similarity(*pairs.masks(labels), x[:, :-1])
    return loss + x[:, -1].mean()


# Classes 0 and 3 are of one group, 1 and 2 of the other, under all the names
# and places that laws give them.
GROUPS = np.zeros(100_000, int)
GROUPS[[1, 2, 7, 99_999]] = 1
OF_FOUR = GROUPS[:4].tolist()


def of_classes(labels):
    return embeddings(labels)


def on_groups(labels, x, loss, groups, weight):
    of_groups = np.zeros((len(x), 2))
    for row, similarities in enumerate(x):
        for group in range(2):
            own = [s for c, s in enumerate(similarities) if groups[c] == group]
            of_groups[row, group] = np.mean(own)
    coarse = np.array([groups[label] for label in labels], int)
    return proxies.cross_entropy(labels, x) + weight * proxies.cross_entropy(
        coarse, of_groups
    )


def two_orders(labels):
    rows = np.random.default_rng(4).standard_normal((len(labels), 5))
    return np.concatenate([embeddings(labels), rows], axis=1)


def sum_of_orders(labels, x, loss, orders):
    masks = pairs.masks(labels)
    return sum(
        pairs.multi_similarity(*masks, part)
        for part in np.split(x, orders, axis=1)
    )


def at_step(labels):
    step = np.full((len(labels), 1), 3.0)
    return np.concatenate([embeddings(labels), step], axis=1)


def draw_of_step_3(labels, x, loss):
    x = x[:, :-1]
    drawn = distance_weighted(*pairs.masks(labels), pairs.unit(x), step=3)
    return pairs.contrastive(*drawn, x)


def loss_and_entry(labels, x, loss):
    loss = pairs.contrastive(*pairs.masks(labels), x[:, :-1])
    return loss + x[:, -1].mean()


def prefixes(labels):
    rows = embeddings(labels)
    return np.concatenate([rows[:, :2], rows], axis=1)


def sum_over_prefixes(labels, x, loss, widths, weights):
    masks = pairs.masks(labels)
    return 3.0 * pairs.multi_similarity(
        *masks, x[:, :2]
    ) + 0.5 * pairs.multi_similarity(*masks, x[:, 2:])


def on_sample(labels, x, loss):
    _, positions = np.unique(labels, return_inverse=True)
    return proxies.cross_entropy(positions, x)


@dataclass(frozen=True)
class Case:
    """A loss and what the laws need to know of it.

    Attributes:
        cls: The class.
        predictions: Function of the labels that makes `y_pred` in float64.
        loop: Function of labels, `y_pred` and arguments: the loss of the
            batch, or of each row. `None` if it is not a function of these.
        arguments: What the loss is made with.
        options: Function that makes the settings of the head in front.
        head: Name of the head. Defaults to what the loss says; the laws of
            heads leave out a loss that says nothing.
        class_axis: Axis of `y_pred` with one column for each class, if any.
        fixed_columns: Number of last columns that have no gradient.
        ordered: Whether the order of the rows matters.
        classes: The most classes whose time is short.
    """

    cls: type
    predictions: Callable[[np.ndarray], np.ndarray]
    loop: Callable[..., Any] | None
    arguments: dict[str, Any] = field(default_factory=dict)
    options: Callable[[], HeadOptions] = HeadOptions
    head: str | None = None
    class_axis: int | None = None
    fixed_columns: int = 0
    ordered: bool = False
    classes: int = 100_000

    def make(self, **arguments):
        return self.cls(**self.arguments, **arguments)

    def expected(self, labels, y_pred):
        y_pred = np.asarray(y_pred, "float64")
        return np.mean(self.loop(labels, y_pred, **self.arguments))


def scaled(metric):
    return lambda: HeadOptions(
        proxies={"metric": metric}, scale=9.0, logits_bias=True
    )


def products():
    return HeadOptions(proxies={"metric": "dot", "unit_proxies": False})


def several_centers():
    return HeadOptions(proxies={"centers": 3})


def memory():
    loss = losses.MultiSimilarity()
    layer = layers.CrossBatchMemory(loss, 24, warm_up_steps=0, name="memory")
    return HeadOptions(memory=layer)


def remembering():
    return HeadOptions(
        sample_aware={
            "memory_size": 24,
            "memory_epoch": 0,
            "filter_epoch": 0,
        }
    )


CASES = {
    "softmax": Case(
        losses.Softmax,
        logits,
        proxies.cross_entropy,
        options=lambda: HeadOptions(
            proxies={"metric": "dot", "unit_proxies": False}, scale=1.0
        ),
        class_axis=1,
    ),
    "norm_softmax": Case(
        losses.NormalizedSoftmax,
        logits,
        proxies.cross_entropy,
        options=scaled("cosine"),
        class_axis=1,
    ),
    "proxynca_pp": Case(
        losses.ProxyNCAPlusPlus,
        logits,
        proxies.cross_entropy,
        options=scaled("neg_squared_euclidean"),
        class_axis=1,
    ),
    "proxynca": Case(
        losses.ProxyNCA,
        logits,
        proxies.proxynca,
        options=scaled("neg_squared_euclidean"),
        class_axis=1,
    ),
    "on_sampled_classes": Case(
        losses.OnSampledClasses,
        logits,
        on_sample,
        {"loss": losses.Softmax()},
        options=lambda: HeadOptions(sample=0.01, sample_at_least=4),
        head="logits",
    ),
}
for key, predictions, arguments in (
    ("proxy_anchor", cosines, {"scale": 8.0, "margin": 0.2}),
    ("arcface", cosines, {"margin": 1.2, "scale": 8.0}),
    ("cosface", cosines, {"margin": 0.1, "scale": 8.0}),
    ("soft_triple", cosines, {"gamma": 3.0}),
    (
        "soft_triple",
        cosines_of_centers,
        {"margin": 0.1, "scale": 8.0, "gamma": 3.0},
    ),
    ("sub_center_arcface", cosines_of_centers, {"margin": 0.3, "scale": 8.0}),
    ("sphereface", cosines, {"margin": 3, "scale": 8.0}),
    ("our_loss_1", cosines, {"scale": 8.0, "margin": 0.2}),
    (
        "our_loss_2",
        cosines,
        {"scale": 4.0, "margin": 0.2, "reduction_over_batch": "mean"},
    ),
):
    for given in (arguments, {}):
        name = "_".join([key, predictions.__name__, *map(str, given.values())])
        several = predictions is cosines_of_centers
        CASES[name] = Case(
            losses.LOSSES[key],
            predictions,
            getattr(proxies, key),
            given,
            options=several_centers if several else HeadOptions,
            class_axis=1,
            # The time of OurLoss2 grows with the square of the classes.
            classes=5_000 if key == "our_loss_2" else 100_000,
        )
for given in ({}, {"margin": 2, "scale": 3.0}):
    CASES["_".join(["large_margin_softmax", *map(str, given.values())])] = Case(
        losses.LargeMarginSoftmax,
        products_and_lengths,
        proxies.large_margin_softmax,
        given,
        options=products,
        class_axis=1,
    )
CASES["p2s_grad"] = Case(
    losses.P2SGrad, cosines, proxies.p2s_grad, class_axis=1
)
for given in ({}, {"margin": 0.3, "context_weight": 0.5}):
    CASES["_".join(["manifold", *map(str, given.values())])] = Case(
        losses.Manifold,
        ends_of_walks,
        proxies.manifold,
        given,
        class_axis=1,
    )
for name, loop in (("proxy_isa", proxy_isa), ("proxynca_isa", proxynca_isa)):
    CASES[name] = Case(
        losses.LOSSES[name],
        exponents,
        loop,
        options=remembering,
        class_axis=2,
        fixed_columns=2,
    )
for key, arguments in (
    ("multi_similarity", {}),
    ("multi_similarity", {"mining_margin": 0.1}),
    ("contrastive", {"form": "similarity"}),
    ("contrastive", {"form": "euclidean"}),
    ("contrastive", {"form": "euclidean", "power": 2}),
    ("contrastive", {"similarity": "l1"}),
    ("contrastive", {"similarity": "signal_to_noise"}),
    ("multi_similarity", {"similarity": "euclidean"}),
    ("nt_xent", {"similarity": "l3"}),
    (
        "supcon",
        {"temperature": 10.0, "similarity": "dot", "normalize": False},
    ),
    ("triplet", {"mining": "all", "swap": True, "similarity": "l1"}),
    ("contrastive", {"positive_weight": 0.5, "negative_weight": 2.0}),
    ("contrastive", {"average": {"low": 0.1, "high": 0.8}}),
    ("nt_xent", {"average": {"per_anchor": True}}),
    ("multi_similarity", {"average": "non_zero"}),
    (
        "triplet",
        {"margin": 0.3, "mining": "all", "average": {"low": 0.1, "high": 1.0}},
    ),
    ("triplet", {"margin": 0.3}),
    (
        "triplet",
        {"margin": 0.3, "mining": "all_semi_hard", "distance": "euclidean"},
    ),
    (
        "triplet",
        {
            "margin": 1.0,
            "mining": "facenet",
            "distance": "euclidean",
            "average": "all",
            "normalize": False,
        },
    ),
    (
        "triplet",
        {"mining": "hard", "distance": "squared_euclidean", "average": "all"},
    ),
    ("triplet", {"mining": "hard", "soft": True, "distance": "euclidean"}),
    ("triplet", {"mining": "easy", "margin": 0.5}),
    ("triplet", {"mining": "all", "margin": 0.3}),
    ("triplet", {"mining": "all", "soft": True, "distance": "euclidean"}),
    ("triplet", {"mining": "all", "swap": True, "average": "all"}),
    ("lifted", {"mining_margin": 0.1}),
    ("lifted", {"positive_scale": 2.0, "negative_scale": 40.0, "hinge": False}),
    ("lifted", {"form": "distance", "margin": 1.0}),
    ("lifted", {"form": "pairs", "margin": 1.0, "normalize": False}),
    ("n_pair", {}),
    ("supcon", {}),
    ("smooth_ap", {"temperature": 0.1}),
    ("circle", {}),
    ("nca", {"temperature": 0.5}),
    ("nca", {"normalize": False}),
    ("nt_xent", {}),
    ("angular", {}),
    ("dynamic_soft_margin", {"bins": 7}),
    ("fast_ap", {}),
    ("histogram", {"bins": 7}),
    ("instance", {"scale": 8.0}),
    ("intra_pair_variance", {}),
    ("pnp", {"temperature": 0.1}),
    *(
        ("pnp", {"temperature": 0.1, "penalty": one})
        for one in ("o", "iu", "ib", "ds")
    ),
    ("ranked_list", {"negative_scale": 0.0}),
    ("recall_surrogate", {"rank_temperature": 0.1}),
    ("signal_to_noise", {"zero_mean": 0.1}),
    ("tuplet_margin", {"scale": 8.0}),
    ("vicreg", {}),
    ("vicreg", {"variance": 3.0, "covariance": 0.5, "normalize": True}),
    ("multi_similarity", {"alpha": 3.0, "beta": 20.0, "base": 0.3}),
    ("contrastive", {"positive_margin": 0.8, "negative_margin": 0.2}),
    ("nt_xent", {"temperature": 0.4}),
    ("n_pair", {"l2": 0.3}),
    ("circle", {"gamma": 20.0, "margin": 0.25}),
    ("angular", {"angle": 0.6}),
    ("fast_ap", {"bins": 6}),
    (
        "intra_pair_variance",
        {"positive_tolerance": 0.05, "negative_tolerance": 0.2},
    ),
    ("pnp", {"temperature": 0.1, "parameter": 3}),
    (
        "ranked_list",
        {
            "boundary": 1.0,
            "margin": 0.2,
            "positive_scale": 2.0,
            "balance": 0.3,
        },
    ),
    (
        "recall_surrogate",
        {"rank_temperature": 0.1, "k": (1, 3), "k_temperature": 0.5},
    ),
    ("signal_to_noise", {"positive_margin": 0.3, "negative_margin": 1.6}),
    ("tuplet_margin", {"scale": 8.0, "margin": 0.3}),
    ("vicreg", {"invariance": 5.0, "epsilon": 0.01}),
    # Two rows of variance 1 are known without it.
    ("barlow_twins", {"redundancy": 0.3, "epsilon": 0.5}),
):
    CASES["_".join([key, *map(str, arguments.values())])] = Case(
        losses.LOSSES[key],
        embeddings,
        of_pairs(getattr(pairs, key)),
        arguments,
        ordered=key in ("n_pair", "vicreg", "barlow_twins"),
    )
# Losses on pairs that a matrix of pairs may describe as well.
PAIR_CASES = {
    name: case for name, case in CASES.items() if case.predictions is embeddings
}
for nu, margin in ((0.0, 0.2), (0.1, 0.2), (0.1, 0.35)):
    CASES[f"margin_{nu}_{margin}"] = Case(
        losses.Margin,
        with_boundaries,
        of_pairs(pairs.margin),
        {"sampling": "all", "nu": nu, "margin": margin},
        fixed_columns=1,
    )
CASES["simsiam"] = Case(
    losses.SimSiam, with_predictions, of_pairs(pairs.simsiam), fixed_columns=5
)
CASES |= {
    "margin_sampled": Case(
        losses.Margin,
        with_boundaries,
        None,
        {"nu": 0.1},
        fixed_columns=1,
        ordered=True,
    ),
    "with_memory": Case(
        losses.WithMemory,
        with_memory,
        loss_and_memory,
        {"loss": losses.MultiSimilarity()},
        options=memory,
        head="embeddings",
    ),
    **{
        f"hierarchical_triplet_{mining}": Case(
            losses.HierarchicalTriplet,
            of_classes,
            pairs.hierarchical_triplet,
            {
                "groups": GROUPS.tolist(),
                "margin": 0.2,
                "level_margin": 0.3,
                "mining": mining,
                "distance": distance,
            },
        )
        for mining, distance in (("semi_hard", "cosine"), ("all", "euclidean"))
    },
    "on_groups": Case(
        losses.OnGroups,
        logits,
        on_groups,
        {"loss": losses.Softmax(), "groups": OF_FOUR, "weight": 0.5},
        options=scaled("cosine"),
        head="logits",
        class_axis=1,
        classes=4,
    ),
    # The layer in front needs a feature map: it has its own tests.
    "on_moments": Case(
        losses.OnMoments,
        two_orders,
        sum_of_orders,
        {"loss": losses.MultiSimilarity(), "orders": 2},
    ),
    "at_step": Case(
        losses.AtStep,
        at_step,
        draw_of_step_3,
        {"loss": losses.Contrastive(miner="distance_weighted")},
        options=lambda: HeadOptions(step=True),
        head="embeddings",
        fixed_columns=1,
        ordered=True,
    ),
    "with_distillation": Case(
        losses.WithDistillation,
        with_memory,
        loss_and_entry,
        {"loss": losses.Contrastive()},
        # It too appends a column.
        options=memory,
        head="embeddings",
    ),
    "matryoshka": Case(
        losses.Matryoshka,
        prefixes,
        sum_over_prefixes,
        {
            "loss": losses.MultiSimilarity(),
            "widths": [2, 5],
            "weights": [3.0, 0.5],
        },
        options=lambda: HeadOptions(prefixes=[2]),
        head="embeddings",
    ),
    "weighted_sum": Case(
        losses.WeightedSum,
        embeddings,
        sum_of_two,
        {
            "losses": [losses.Triplet(margin=0.5), losses.Contrastive()],
            "weights": [2.0, 0.5],
        },
        head="embeddings",
    ),
}
