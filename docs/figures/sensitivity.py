"""R@1 against temperature, k and the proxies' rate (ProxyNCA++, Figure 4).

python docs/figures/sensitivity.py --data-dir DIR --output FOLDER
"""

import keras
import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure
from omniglot_runs import CLASSES, load

from keras_dml import layers, losses
from keras_dml.data import balanced_batches
from keras_dml.evaluation import retrieval_metrics
from keras_dml.models import small_cnn
from keras_dml.optimizers import PerVariable

# What is swept, and what stays as it is while the others are.
SWEPT = {
    "temperature": (1 / 27, 1 / 9, 1 / 3, 1.0),
    "k": (1, 4, 16, 49),  # of 7 x 7 places; 49 is average pooling
    "proxies' learning rate": (1e-3, 1e-2, 1e-1, 1.0),
}
DEFAULT = {"temperature": 1 / 9, "k": 1, "proxies' learning rate": 1e-1}
QUICK = {"k": (1, 49)}
STEPS, QUICK_STEPS, DIM = 240, 60, 64


def train(data_dir, seed, steps, temperature, k, rate):
    """R@1 on unseen characters after some steps of ProxyNCA++."""
    keras.utils.set_random_seed(seed)
    parts = load(data_dir, seed)
    images, labels = parts["seen"]
    network = small_cnn(images.shape[1:], widths=(32,), stem=16)
    x = layers.GlobalKMaxPooling2D(k)(network.output)
    x = layers.EmbeddingHead(DIM, name="head")(x)
    metric = "neg_squared_euclidean"
    nearness = layers.Proxies(CLASSES, metric=metric, name="proxies")(x)
    logits = layers.ScaledLogits(1 / temperature, name="logits")(nearness)
    trainer = keras.Model(network.input, logits)
    trainer.compile(
        PerVariable(
            keras.optimizers.Adam(1e-3, name="network"),
            {"proxies/.*": keras.optimizers.Adam(rate, name="proxies")},
        ),
        losses.ProxyNCAPlusPlus(),
    )
    rows = balanced_batches(
        labels, classes=20, images=2, seed=seed, epoch=0, steps=steps
    )
    for batch in rows:
        trainer.train_on_batch(images[batch], labels[batch])
    embedder = keras.Model(network.input, x)
    unseen, classes = parts["unseen"]
    embeddings = keras.ops.convert_to_numpy(embedder(unseen))
    return retrieval_metrics(embeddings, classes, k=1)["recall@1"]


def compute(data_dir, seed=0, seeds=2, quick=False):
    """Trains with every value of every setting.

    Returns:
        Dict of setting to dict of value to the R@1 of each seed.
    """
    steps = QUICK_STEPS if quick else STEPS
    return {
        setting: {
            value: [
                train(
                    data_dir,
                    seed + number,
                    steps,
                    *{**DEFAULT, setting: value}.values(),
                )
                for number in range(seeds)
            ]
            for value in values
        }
        for setting, values in (QUICK if quick else SWEPT).items()
    }


def draw(results, seed):
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for axis, (setting, found) in zip(axes, results.items(), strict=True):
        swept, values = list(found), np.array(list(found.values()))
        axis.plot(swept, values.mean(axis=1), "o-", color="C0")
        axis.fill_between(
            swept, values.min(axis=1), values.max(axis=1), alpha=0.2
        )
        axis.set_xscale("log")
        axis.set_xlabel(setting)
    last = seed + values.shape[1] - 1
    axes[0].set_ylabel(f"R@1 (seeds {seed} to {last})")
    return figure


def main(argv=None):
    options = parse(__doc__, argv, seeds=2, data=True)
    results = compute(
        options.data_dir, options.seed, options.seeds, options.quick
    )
    for setting, values in results.items():
        for value, found in values.items():
            numbers = " and ".join(f"{number:.3f}" for number in found)
            print(f"| {setting} | {value:.4g} | {numbers} |")
    save(draw(results, options.seed), options.output, "sensitivity")
    return results


if __name__ == "__main__":
    main()
