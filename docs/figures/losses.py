"""What each loss does to two classes.

    python docs/figures/losses.py --output docs/figures

Twelve embeddings in two dimensions are trained alone, without a network. A
picture shows where they point: the circle inside is the start, the one outside
the end, so that a path that goes straight out does not turn.
"""

import keras
import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure

from keras_dml.losses import LOSSES
from keras_dml.models import HEADS, HeadOptions

EACH, STEPS, QUICK_STEPS, RATE = 6, 120, 10, 0.02
LABELS = np.repeat((0, 1), EACH).astype("int32")
# Degrees around which the classes begin, and how far they spread.
STARTS, SPREAD = (55.0, 125.0), 45.0
# Where proxies begin, one or two a class, those of a class side by side.
PROXIES, SEVERAL = (25.0, 155.0), (15.0, 75.0, 105.0, 165.0)
WITH_CENTERS = ("soft_triple", "sub_center_arcface")
LEFT_OUT = {
    **dict.fromkeys(("n_pair", "softmax"), "embeddings have any length"),
    "signal_to_noise": "of two dimensions it sees the difference alone",
    **dict.fromkeys(
        ("barlow_twins", "simsiam", "vicreg"), "rows of a class are two views"
    ),
    "hierarchical_triplet": "it takes groups of classes",
}
DISTANCES = {"metric": "neg_squared_euclidean"}
# What recipes put in front of losses, where it is not the default.
OPTIONS = {
    **dict.fromkeys(WITH_CENTERS, HeadOptions(proxies={"centers": 2})),
    "proxynca": HeadOptions(scale=1.0, proxies=DISTANCES),
    "proxynca_pp": HeadOptions(scale=9.0, proxies=DISTANCES),
}
QUICK = ("norm_softmax", "contrastive")
INSIDE, OUTSIDE = 0.35, 1.0
COLORS = ("C0", "C1")


def rows_at(degrees):
    """Rows of length 1."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def embeddings():
    """The rows of both classes, some of which lie among the other's."""
    offsets = np.linspace(-SPREAD, SPREAD, EACH)
    return rows_at(np.concatenate([start + offsets for start in STARTS]))


def build(key):
    """A trainer with a loss, and the variables of embeddings and proxies."""
    loss = LOSSES[key]()
    place = keras.Input((), dtype="int32", name="place")
    label = keras.Input((), dtype="int32", name="label")
    points = keras.layers.Embedding(len(LABELS), 2, name="points")
    options = OPTIONS.get(key, HeadOptions())
    output = HEADS[loss.takes].connect(points(place), label, 2, options)
    trainer = keras.Model({"place": place, "label": label}, output)
    trainer.compile(keras.optimizers.Adam(RATE), loss)
    points.set_weights([embeddings()])
    found = [points.embeddings]
    if any(layer.name == "proxies" for layer in trainer.layers):
        # The other weights of the layer, if any, are of a memory.
        proxies = trainer.get_layer("proxies").trainable_weights[0]
        rows = rows_at(SEVERAL if key in WITH_CENTERS else PROXIES)
        proxies.assign(rows.reshape(proxies.shape))
        found.append(proxies)
    return trainer, found


def directions(variable):
    """Rows of length 1; the proxies of a class stand below each other."""
    return keras.utils.normalize(variable.numpy().reshape(-1, 2))


def train(key, seed, steps):
    """The directions of the embeddings, and of the proxies if there are any.

    Returns:
        Float arrays `(steps + 1, rows, 2)`.
    """
    keras.utils.set_random_seed(seed)
    trainer, variables = build(key)
    paths = [[directions(one)] for one in variables]
    batch = {"place": np.arange(len(LABELS)), "label": LABELS}
    for _ in range(steps):
        trainer.train_on_batch(batch, LABELS)
        for path, one in zip(paths, variables, strict=True):
            path.append(directions(one))
    return [np.array(path) for path in paths]


def draw(points, proxies=None):
    figure = Figure(figsize=(2.6, 2.6), layout="constrained")
    axes = figure.subplots(subplot_kw={"projection": "polar"})
    _draw_paths(axes, points, LABELS, marker="o", markersize=5)
    if proxies is not None:
        owners = np.repeat((0, 1), proxies.shape[1] // 2)
        star = {"marker": "*", "markersize": 11, "markeredgecolor": "black"}
        _draw_paths(axes, proxies, owners, **star)
    axes.set_ylim(0, OUTSIDE)
    axes.set_yticks([INSIDE, OUTSIDE], ["", ""])
    axes.set_xticks([])
    return figure


def _draw_paths(axes, rows, labels, markeredgecolor=None, **marker):
    radii = np.linspace(INSIDE, OUTSIDE, len(rows))
    for path, label in zip(rows.swapaxes(0, 1), labels, strict=True):
        angles = np.unwrap(np.arctan2(path[:, 1], path[:, 0]))
        color = COLORS[label]
        edge = markeredgecolor or color
        axes.plot(angles, radii, color=edge, lw=0.8, alpha=0.7)
        end = {"color": color, "markeredgecolor": edge, "clip_on": False}
        axes.plot(angles[-1:], radii[-1:], **marker, **end)


def cosines(points):
    """The mean cosine within classes, and between them, at the end."""
    found = points[-1] @ points[-1].T
    same = LABELS[:, None] == LABELS
    others = ~np.eye(len(LABELS), dtype=bool)
    return found[same & others].mean(), found[~same].mean()


def main(argv=None):
    keys = [key for key in LOSSES if key not in LEFT_OUT]
    options = parse(__doc__, argv, parts=keys)
    results = {}
    for key in options.only or (QUICK if options.quick else keys):
        steps = QUICK_STEPS if options.quick else STEPS
        paths = train(key, options.seed, steps)
        results[key] = cosines(paths[0])
        print(f"| {key} | {results[key][0]:.2f} | {results[key][1]:.2f} |")
        save(draw(*paths), f"{options.output}/losses", key)
    return results


if __name__ == "__main__":
    main()
