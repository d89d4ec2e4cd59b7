"""Images and proxies in the plane by epoch (Proxy-ISA, Figures 2 and 6).

python docs/figures/proxies_by_epoch.py --data-dir DIR --output FOLDER
"""

import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure
from omniglot_runs import NAMES, load, train
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from keras_dml.ops.similarities import unit_rows

LOSSES = ("norm_softmax", "proxy_anchor", "proxy_isa")


def place(rows, seed):
    """Places rows in the plane, of 0 to 1, near ones near each other."""
    model = TSNE(init="pca", metric="cosine", random_state=seed)
    # On busy cores its threads mostly wait for each other.
    with threadpool_limits(1):
        places = model.fit_transform(rows)
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / (high - low)


def numbers(images, proxies, labels):
    """Cosines of images and proxies, rows of length 1.

    Returns:
        Dict of mean cosines: `own` and `other` of an image and its own or
        another proxy, `proxies` of two proxies; `nearest`, the share of the
        images whose nearest proxy is their own; and `beside_a_proxy`, the
        share of the proxies to which another proxy is nearer than any image.
    """
    to_proxies = images @ proxies.T
    own = np.eye(len(proxies), dtype=bool)[labels]
    between = proxies @ proxies.T
    apart = ~np.eye(len(proxies), dtype=bool)
    nearest_proxy = np.where(apart, between, -1).max(axis=1)
    return {
        "own": to_proxies[own].mean(),
        "other": to_proxies[~own].mean(),
        "proxies": between[apart].mean(),
        "nearest": np.mean(to_proxies.argmax(axis=1) == labels),
        "beside_a_proxy": np.mean(nearest_proxy > to_proxies.max(axis=0)),
    }


def compute(data_dir, seed=0, quick=False):
    """Trains with every loss.

    Returns:
        Dict of (loss, epochs) to dict: the `numbers` of all seen images, and
        `places` `(images + proxies, 2)` with the `labels` of every second
        image.
    """
    labels = load(data_dir, seed)["seen"][1]
    results = {}
    for loss in LOSSES:
        taken, _ = train(loss, data_dir, seed, quick)
        for epoch, (images, proxies) in taken.items():
            if epoch == 0:
                continue
            images, proxies = (
                np.asarray(unit_rows(rows)) for rows in (images, proxies)
            )
            result = numbers(images, proxies, labels)
            shown = np.concatenate([images[::2], proxies])
            result["places"] = place(shown, seed)
            result["labels"] = labels[::2]
            results[loss, epoch] = result
    return results


def draw(results, seed):
    losses = list(dict.fromkeys(loss for loss, _ in results))
    columns = len(results) // len(losses)
    figure = Figure(figsize=(3.3 * columns, 9.6), layout="constrained")
    axes = figure.subplots(len(losses), columns)
    for axis, ((loss, epoch), result) in zip(
        axes.flat, results.items(), strict=True
    ):
        images = len(result["labels"])
        axis.scatter(
            *result["places"][:images].T, 5, c=result["labels"], cmap="turbo"
        )
        axis.scatter(
            *result["places"][images:].T, 60, c="navy", marker="*",
            edgecolors="white", lw=0.5,
        )  # fmt: skip
        axis.set(xticks=[], yticks=[])
        axis.set_title(
            f"{NAMES[loss]}, epoch {epoch}\nproxies: mean cosine "
            f"{result['proxies']:.2f}",
            fontsize=9,
        )
    figure.supxlabel(f"t-SNE, first axis (seed {seed})", size=10)
    figure.supylabel("t-SNE, second axis", size=10)
    return figure


def main(argv=None):
    options = parse(__doc__, argv, data=True)
    results = compute(options.data_dir, options.seed, options.quick)
    keys = ("own", "other", "proxies", "nearest", "beside_a_proxy")
    print("| loss | epoch |", " | ".join(keys), "|")
    for (loss, epoch), result in results.items():
        row = (f"{result[key]:.3f}" for key in keys)
        print(f"| {NAMES[loss]} | {epoch} |", " | ".join(row), "|")
    save(draw(results, options.seed), options.output, "proxies_by_epoch")
    return results


if __name__ == "__main__":
    main()
