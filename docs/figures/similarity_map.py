"""Cosines of images and proxies as a heat map (Proxy-ISA, Figure 7).

python docs/figures/similarity_map.py --data-dir DIR --output FOLDER
"""

import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure
from omniglot_runs import NAMES, load, train

from keras_dml.ops.similarities import unit_rows

LOSSES = ("norm_softmax", "proxy_anchor", "proxy_isa")
IMAGES = 3  # of each class, as in the paper


def draw_rows(labels, seed):
    """Rows of three images of every class, in the order of the classes."""
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [
            generator.choice(np.flatnonzero(labels == label), IMAGES, False)
            for label in np.unique(labels)
        ]
    )


def compute(data_dir, seed=0, quick=False):
    """Trains with every loss.

    Returns:
        Dict of (loss, epochs) to dict: `cosines`, the matrix of three images
        of each class, then of the proxies; and mean cosines of two images of
        the `same` class, of `different` classes, of an image and its `own`
        and `other` proxies, and of two `proxies`.
    """
    labels = load(data_dir, seed)["seen"][1]
    rows = draw_rows(labels, seed)
    results = {}
    for loss in LOSSES:
        taken, _ = train(loss, data_dir, seed, quick)
        for epoch, (images, proxies) in taken.items():
            if epoch == 1:
                continue
            together = unit_rows(np.concatenate([images[rows], proxies]))
            together = np.asarray(together)
            cosines = together @ together.T
            results[loss, epoch] = {
                "cosines": cosines,
                **means(cosines, labels[rows]),
            }
    return results


def means(cosines, labels):
    count = len(labels)
    images, proxies = slice(count), slice(count, None)
    same = labels[:, None] == labels
    own = labels[:, None] == np.arange(len(cosines) - count)
    apart = ~np.eye(len(cosines), dtype=bool)
    return {
        "same": cosines[images, images][same & apart[images, images]].mean(),
        "different": cosines[images, images][~same].mean(),
        "own": cosines[images, proxies][own].mean(),
        "other": cosines[images, proxies][~own].mean(),
        "proxies": cosines[proxies, proxies][apart[proxies, proxies]].mean(),
    }


def draw(results, seed):
    trained = {key: value for key, value in results.items() if key[1]}
    losses = list(dict.fromkeys(loss for loss, _ in trained))
    columns = len(trained) // len(losses)
    figure = Figure(figsize=(4.8, 5.8), layout="constrained")
    axes = figure.subplots(
        len(losses), columns, sharex=True, sharey=True, squeeze=False
    )
    for axis, ((_, epoch), result) in zip(
        axes.flat, trained.items(), strict=True
    ):
        size = len(result["cosines"])
        border = size * IMAGES / (IMAGES + 1)
        shown = axis.imshow(result["cosines"], cmap="RdBu_r", vmin=-1, vmax=1)
        axis.axhline(border - 0.5, color="black", lw=0.8)
        axis.axvline(border - 0.5, color="black", lw=0.8)
        middles = [border / 2, (border + size) / 2]
        axis.set_xticks(middles, ["images", "proxies"])
        axis.set_yticks(
            middles, ["images", "proxies"], rotation=90, va="center"
        )
        axis.set_title(
            f"epoch {epoch}\nother classes: {result['different']:.2f}",
            fontsize=8,
        )
    for axis, loss in zip(axes[:, 0], losses, strict=True):
        axis.set_ylabel(NAMES[loss])
    label = f"cosine (means above; {IMAGES} images of each class, seed {seed})"
    figure.colorbar(shown, ax=axes, label=label, shrink=0.6)
    return figure


def main(argv=None):
    options = parse(__doc__, argv, data=True)
    results = compute(options.data_dir, options.seed, options.quick)
    keys = ("same", "different", "own", "other", "proxies")
    print("| loss | epoch |", " | ".join(keys), "|")
    for (loss, epoch), result in results.items():
        row = (f"{result[key]:.3f}" for key in keys)
        print(f"| {NAMES[loss]} | {epoch} |", " | ".join(row), "|")
    save(draw(results, options.seed), options.output, "similarity_map")
    return results


if __name__ == "__main__":
    main()
