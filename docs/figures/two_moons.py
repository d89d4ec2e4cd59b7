"""Temperature and decision boundary on two moons (ProxyNCA++, Figure 3).

python docs/figures/two_moons.py --output FOLDER
"""

import keras
import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from keras_dml.layers import Proxies, ScaledLogits
from keras_dml.losses import ProxyNCAPlusPlus, Softmax

TEMPERATURES = {"1": 1.0, "1/3": 1 / 3, "1/9": 1 / 9, "1/27": 1 / 27}
KINDS = ("plain softmax", "ProxyNCA++")
# Appendix B of the paper.
POINTS, NOISE, DRAW, UNITS = 600, 0.3, 0, 100
EPOCHS, QUICK_EPOCHS = 100, 40
X, Y = np.meshgrid(np.linspace(-1.8, 2.8, 140), np.linspace(-1.4, 1.9, 100))
GRID = np.stack([X.ravel(), Y.ravel()], axis=1)


def build(kind, temperature):
    point = keras.Input((2,))
    hidden = keras.layers.Dense(UNITS, activation="relu")(point)
    if kind == "ProxyNCA++":
        embedding = keras.layers.Dense(2, name="head")(hidden)
        similarity = Proxies(2, metric="neg_squared_euclidean")(embedding)
    else:
        similarity = keras.layers.Dense(2)(hidden)
    logits = ScaledLogits(1 / temperature, name="logits")(similarity)
    return keras.Model(point, logits)


def train(kind, temperature, seed, epochs):
    keras.utils.set_random_seed(seed)
    points, labels = make_moons(POINTS, noise=NOISE, random_state=DRAW)
    model = build(kind, temperature)
    loss = ProxyNCAPlusPlus() if kind == "ProxyNCA++" else Softmax()
    model.compile(keras.optimizers.SGD(0.02), loss, steps_per_execution=100)
    # One long epoch: beginning one costs more than these few steps.
    points, labels = np.tile(points, (epochs, 1)), np.tile(labels, epochs)
    model.fit(points, labels, batch_size=64, verbose=0)
    return model


def compute(seed=0, seeds=3, quick=False):
    """What the networks say of points and of every place of the plane.

    Returns:
        Dict of (kind, temperature) to dict: `probability` of the second moon
        `(rows, columns)` for the first seed; and for every seed `train` and
        `test`, the accuracy, and `unsure`, the share of the plane where the
        likelier moon has a probability below 0.9.
    """
    results = {}
    for kind in KINDS:
        for name, temperature in TEMPERATURES.items():
            result = {"train": [], "test": [], "unsure": []}
            for number in range(seed, seed + seeds):
                epochs = QUICK_EPOCHS if quick else EPOCHS
                model = train(kind, temperature, number, epochs)
                for part, count, state in (
                    ("train", POINTS, DRAW),
                    ("test", 4000, DRAW + 1),
                ):
                    points, labels = make_moons(
                        count, noise=NOISE, random_state=state
                    )
                    chosen = np.argmax(model(points), axis=1)
                    result[part].append(np.mean(chosen == labels))
                moon = keras.ops.softmax(model(GRID))[:, 1]
                moon = keras.ops.convert_to_numpy(moon).reshape(X.shape)
                unsure = np.maximum(moon, 1 - moon) < 0.9
                result["unsure"].append(np.mean(unsure))
                result.setdefault("probability", moon)
            results[kind, name] = result
    return results


def draw(results, seed):
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    axes = figure.subplots(2, len(TEMPERATURES), sharex=True, sharey=True)
    points, labels = make_moons(POINTS, noise=NOISE, random_state=DRAW)
    levels = np.linspace(0, 1, 11)
    for axis, ((kind, name), result) in zip(
        axes.flat, results.items(), strict=True
    ):
        moon = result["probability"]
        shown = axis.contourf(X, Y, moon, levels, cmap="RdBu_r", alpha=0.6)
        axis.contour(X, Y, moon, [0.5], colors="black")
        axis.scatter(
            *points.T, 5, c=labels, cmap="RdBu_r", edgecolors="black", lw=0.3
        )
        axis.set_title(
            f"{kind}, T = {name}\ntraining accuracy "
            f"{min(result['train']):.0%} to {max(result['train']):.0%}",
            fontsize=9,
        )
    for axis in axes[:, 0]:
        axis.set_ylabel("y")
    for axis in axes[1]:
        axis.set_xlabel("x")
    count = len(result["train"])
    figure.suptitle(f"picture: seed {seed}; accuracy: {count} seeds", size=9)
    figure.colorbar(shown, ax=axes, label="probability of the red moon")
    return figure


def main(argv=None):
    options = parse(__doc__, argv, seeds=3)
    results = compute(options.seed, options.seeds, options.quick)
    print("| | T | training accuracy | test accuracy | unsure |")
    for (kind, name), result in results.items():
        numbers = (
            f"{np.mean(result[key]):.3f} ({min(result[key]):.3f} to "
            f"{max(result[key]):.3f})"
            for key in ("train", "test", "unsure")
        )
        print(f"| {kind} | {name} |", " | ".join(numbers), "|")
    save(draw(results, options.seed), options.output, "two_moons")
    return results


if __name__ == "__main__":
    main()
