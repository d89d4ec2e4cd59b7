"""Size of the gradient against alpha (Heated-Up, Figures 2 and 4c-d).

    python docs/figures/gradient_size.py --output FOLDER

Ten proxies stand on the unit circle, 36 degrees apart. A sample of the first
class lies between its own proxy, place 0, and the next one, place 1. Nothing
is trained or drawn at random.
"""

import keras
import numpy as np
import tensorflow as tf
from figure_tools import parse, save
from matplotlib.figure import Figure

from keras_dml.layers import Proxies, ScaledLogits
from keras_dml.losses import softmax_loss

HARD, EASY = (0.9, 0.7, 0.55, 0.5), (0.45, 0.35, 0.2, 0.0)
PLACES = HARD + EASY
VALUES = np.geomspace(0.1, 300, 61)


def circle(places, classes):
    angles = 2 * np.pi * np.asarray(places, np.float64) / classes
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


class Gradient:
    """Length of the gradient of the library's loss, by differentiation."""

    def __init__(self, proxies):
        # "dot" takes embeddings as they are: this is the gradient with
        # respect to the normalized embedding itself, as in the paper.
        self.similarity = Proxies(
            len(proxies), metric="dot", unit_proxies=False, dtype="float64"
        )
        self.similarity.build((None, 2))
        self.similarity.set_weights([proxies])
        self.logits = ScaledLogits(dtype="float64")
        self.logits.build((None, len(proxies)))

    def __call__(self, rows, alpha):
        self.logits.scale.assign(alpha)
        rows = tf.constant(rows)
        own = np.zeros(len(rows), "int32")
        with tf.GradientTape() as tape:
            tape.watch(rows)
            logits = self.logits(self.similarity(rows))
            losses = softmax_loss(own, logits)
        gradient = tape.gradient(losses, rows)
        return np.linalg.norm(keras.ops.convert_to_numpy(gradient), axis=1)


def closed_formula(rows, proxies, alpha):
    """`|alpha sum_m (p_m - q_m) w_m|`, equation 3 of the paper."""
    logits = alpha * rows @ proxies.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[:, 0] -= 1.0
    return np.linalg.norm(alpha * p @ proxies, axis=1)


def compute(classes=10):
    """Gradient sizes of the samples, both ways.

    Returns:
        Dict of arrays `(samples, values)`: `alpha` and `alpha_closed` against
        alpha at length 1; `length` and `length_closed` against the length of
        the embedding at alpha 1, without normalization.
    """
    proxies = circle(range(classes), classes)
    samples = circle(PLACES, classes)
    gradient = Gradient(proxies)
    sizes = {
        "alpha": [gradient(samples, value) for value in VALUES],
        "alpha_closed": [closed_formula(samples, proxies, v) for v in VALUES],
        "length": [gradient(value * samples, 1.0) for value in VALUES],
        "length_closed": [
            closed_formula(value * samples, proxies, 1.0) for value in VALUES
        ],
    }
    return {name: np.array(values).T for name, values in sizes.items()}


def draw(results):
    figure = Figure(figsize=(9.5, 6.4), layout="constrained")
    axes = figure.subplots(2, 2)
    for row, variable, label in (
        (axes[0], "alpha", "alpha (embedding of length 1)"),
        (axes[1], "length", "length of the embedding (alpha = 1)"),
    ):
        for number, place in enumerate(PLACES):
            axis = row[number // len(HARD)]
            (line,) = axis.plot(
                VALUES, results[variable][number], label=f"place {place}"
            )
            axis.plot(
                VALUES[::4],
                results[f"{variable}_closed"][number, ::4],
                ".",
                color=line.get_color(),
            )
        for axis, name in zip(row, ("hard", "easy"), strict=True):
            axis.set(xscale="log", xlabel=label, ylabel="size of the gradient")
            axis.set_title(f"{name} samples", fontsize=10)
            axis.legend(fontsize=8)
    axes[0, 0].set_yscale("log")
    figure.suptitle("lines: differentiated; dots: the closed formula", size=10)
    return figure


def main(argv=None):
    options = parse(__doc__, argv)
    results = compute()
    print("| place | largest at alpha | size there | size at 0.1 | at 300 |")
    for place, sizes in zip(PLACES, results["alpha"], strict=True):
        top = sizes.argmax()
        numbers = (VALUES[top], sizes[top], sizes[0], sizes[-1])
        print(f"| {place} |", " | ".join(f"{n:.4g}" for n in numbers), "|")
    save(draw(results), options.output, "gradient_size")
    return results


if __name__ == "__main__":
    main()
