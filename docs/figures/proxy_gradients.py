"""Gradients of proxies, embedding layer and network (ProxyNCA++, §3.6).

    python docs/figures/proxy_gradients.py --data-dir DIR --output FOLDER

ProxyNCA++ trains 40 characters with one rate for all. The gradient of a proxy
passes the normalization to length 1, which divides it by the proxy's length.
"""

import keras
import numpy as np
import tensorflow as tf
from figure_tools import parse, save
from matplotlib.figure import Figure
from omniglot_runs import CLASSES, load

from keras_dml import layers, losses
from keras_dml.data import balanced_batches
from keras_dml.models import small_cnn

DIM, STEPS, QUICK_STEPS, FIRST = 512, 240, 20, 20
# Of a draw from a normal distribution over 8, as the authors' code has it; the
# draw itself; and what the normalization would not change.
LENGTHS = {"1": 1.0, "2.8": DIM**0.5 / 8, "22.6": DIM**0.5}
AUTHORS = "2.8"
QUICK = ("1", "2.8")
PARTS = ("network", "embedding layer", "proxies")


def build(image_shape, length):
    """A trainer whose proxies have one length, and its variables by part."""
    network = small_cnn(image_shape, widths=(32,), stem=16)
    x = keras.layers.GlobalMaxPooling2D()(network.output)
    head = layers.EmbeddingHead(DIM, name="head")
    metric = "neg_squared_euclidean"
    proxies = layers.Proxies(CLASSES, metric=metric, name="proxies")
    logits = layers.ScaledLogits(9.0, name="logits")(proxies(head(x)))
    (weights,) = proxies.trainable_variables
    drawn = keras.random.normal(weights.shape, seed=0)
    weights.assign(length * keras.utils.normalize(np.asarray(drawn)))
    groups = (network, head, proxies)
    variables = [group.trainable_variables for group in groups]
    return keras.Model(network.input, logits), dict(
        zip(PARTS, variables, strict=True)
    )


def train(data_dir, seed, length, steps):
    """The size of an element of the gradient, by part, at every step."""
    keras.utils.set_random_seed(seed)
    images, labels = load(data_dir, seed)["seen"]
    trainer, parts = build(images.shape[1:], length)
    loss = losses.ProxyNCAPlusPlus()
    optimizer = keras.optimizers.Adam(1e-3)
    variables = [one for own in parts.values() for one in own]
    optimizer.build(variables)

    @tf.function
    def step(rows, classes):
        with tf.GradientTape() as tape:
            value = loss(classes, trainer(rows, training=True))
        gradients = tape.gradient(value, variables)
        optimizer.apply(gradients, variables)
        return gradients

    sizes = {part: [] for part in parts}
    for batch in balanced_batches(
        labels, classes=20, images=2, seed=seed, epoch=0, steps=steps
    ):
        gradients = iter(step(images[batch], labels[batch]))
        for part, own in parts.items():
            elements = [np.ravel(next(gradients)) for _ in own]
            squares = np.square(np.concatenate(elements))
            sizes[part].append(np.sqrt(squares.mean()))
    return {part: np.array(found) for part, found in sizes.items()}


def compute(data_dir, seed=0, quick=False):
    """Trains with proxies of every length.

    Returns:
        Dict of a length in words to the sizes of `train`.
    """
    steps = QUICK_STEPS if quick else STEPS
    return {
        name: train(data_dir, seed, LENGTHS[name], steps)
        for name in (QUICK if quick else LENGTHS)
    }


def ratios(sizes):
    """How many times larger the gradients are than those of the proxies."""
    first = {part: found[:FIRST].mean() for part, found in sizes.items()}
    return [first[part] / first["proxies"] for part in PARTS[:2]]


def draw(results):
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for axis, (length, sizes) in zip(axes, results.items(), strict=True):
        for part, found in sizes.items():
            axis.plot(np.arange(1, len(found) + 1), found, label=part)
        axis.set_yscale("log")
        axis.set_title(f"proxies of length {length} at first", fontsize=10)
        axis.set_xlabel("step")
    axes[0].set_ylabel("root mean square of an element")
    axes[-1].legend(fontsize=8)
    return figure


def main(argv=None):
    options = parse(__doc__, argv, data=True)
    results = compute(options.data_dir, options.seed, options.quick)
    for length, sizes in results.items():
        network, head = ratios(sizes)
        print(f"| {length} | {network:.1f} | {head:.1f} |")
    save(draw(results), options.output, "proxy_gradients")
    return results


if __name__ == "__main__":
    main()
