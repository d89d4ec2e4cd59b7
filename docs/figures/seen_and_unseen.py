"""Retrieval of seen and unseen classes by epoch (Proxy-ISA, Figure 11).

python docs/figures/seen_and_unseen.py --data-dir DIR --output FOLDER
"""

import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure
from omniglot_runs import EVERY, NAMES, train

LOSSES = ("norm_softmax", "proxy_anchor", "proxy_isa")


def compute(data_dir, seed=0, seeds=2, quick=False):
    """MAP@R of seen and unseen characters after every third epoch.

    Returns:
        Dict of name to dict of `seen` and `unseen`, arrays
        `(seeds, evaluations)`.
    """
    results = {}
    for name in LOSSES:
        curves = {"seen": [], "unseen": []}
        for number in range(seed, seed + seeds):
            _, history = train(name, data_dir, number, quick)
            for part, values in curves.items():
                values.append(history[f"{part}_map@r"])
        results[name] = {k: np.array(v) for k, v in curves.items()}
        last = {k: v[:, -1].mean() for k, v in results[name].items()}
        best = results[name]["unseen"].mean(axis=0)
        print(
            f"| {NAMES[name]} | {last['seen']:.3f} | {last['unseen']:.3f} ± "
            f"{results[name]['unseen'][:, -1].std():.3f} | {best.max():.3f} | "
            f"{EVERY * (best.argmax() + 1)} |",
            flush=True,
        )
    return results


def draw(results, seed):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for number, (name, curves) in enumerate(results.items()):
        for part, style in (("seen", "--"), ("unseen", "-")):
            epochs = EVERY * (1 + np.arange(curves[part].shape[1]))
            axis.plot(
                epochs,
                curves[part].mean(axis=0),
                style,
                color=f"C{number}",
                label=f"{NAMES[name]}, {part}",
            )
            axis.fill_between(
                epochs,
                curves[part].min(axis=0),
                curves[part].max(axis=0),
                color=f"C{number}",
                alpha=0.15,
            )
    axis.set_xlabel("epoch")
    axis.legend(fontsize=8)
    last = seed + len(results["proxy_isa"]["seen"]) - 1
    axis.set_ylabel(f"MAP@R (seeds {seed} to {last}, lowest to highest)")
    return figure


def main(argv=None):
    options = parse(__doc__, argv, seeds=2, data=True)
    print("| | seen, end | unseen, end | unseen, best | at epoch |")
    results = compute(
        options.data_dir, options.seed, options.seeds, options.quick
    )
    save(draw(results, options.seed), options.output, "seen_and_unseen")
    return results


if __name__ == "__main__":
    main()
