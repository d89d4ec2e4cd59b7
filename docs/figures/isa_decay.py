"""Decay functions and search length of Proxy-ISA (Figure 5, equation 15).

python docs/figures/isa_decay.py --output FOLDER
"""

import keras
import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure

from keras_dml.layers import SampleAwareProxies
from keras_dml.ops import sample_aware

VOLUME, TAU, HARDNESS, MARGIN = 100.0, 1.5, 0.15, 0.1
SEEN = np.arange(0, 1001)
MEASURED = np.arange(0, 1001, 50)
SENSITIVITIES = (0.1, 0.4, 0.9)
AVERAGES = (0.0, 0.5, 1.0)  # mean cosine of a class and its proxy
DECAYS = {
    "reciprocal": "1 / max(1, E)",
    "lower_bound": "v",
    "sigma": "sigma",
}


def measured(decay):
    """The weight that the layer gives a row beyond the learned similarity."""
    layer = SampleAwareProxies(2, volume=VOLUME, tau=TAU, decay=decay)
    row, label = np.array([[1.0, 0.0]]), np.array([0])
    layer.build(((1, 2), (1,)))
    layer.similarity.proxies.assign(np.eye(2))
    layer.learned.assign([0.1, 0.1])  # the row's cosine, 1, is above
    layer.epochs.assign(layer.filter_epoch)
    weights = []
    for count in MEASURED:
        layer.seen.assign([count, count])
        output = layer([row, label])
        weights.append(float(output[0, 0, 3]))  # classes + 1
    return np.array(weights)


def compute():
    """The functions of the number of rows seen of a class, `n`.

    Returns:
        Dict of arrays: `effective` `(n,)`; one entry for each of `DECAYS`
        `(n,)`, and `measured` with those of the layer; `search_length`, dict
        of (sensitivity, average) to array `(n,)`.
    """
    effective = sample_aware.effective_number(SEEN.astype("float32"), VOLUME)
    numpy = keras.ops.convert_to_numpy
    return {
        "effective": numpy(effective),
        "reciprocal": 1 / np.maximum(numpy(effective), 1.0),
        "lower_bound": numpy(sample_aware.lower_bound(effective)),
        "sigma": numpy(sample_aware.sigma(effective, VOLUME, TAU)),
        "measured": {decay: measured(decay) for decay in DECAYS},
        "search_length": {
            (sensitivity, average): numpy(
                sample_aware.search_length(
                    HARDNESS * average, effective, sensitivity, MARGIN
                )
            )
            for sensitivity in SENSITIVITIES
            for average in AVERAGES
        },
    }


def draw(results):
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    number, decays, lengths = figure.subplots(1, 3)
    number.plot(SEEN, results["effective"])
    number.axhline(VOLUME, color="gray", ls="--", label=f"V = {VOLUME:g}")
    number.set(ylabel="effective number E")
    number.legend()
    for decay, name in DECAYS.items():
        (line,) = decays.plot(SEEN, results[decay], label=name)
        decays.plot(
            MEASURED, results["measured"][decay], "o", ms=3,
            color=line.get_color(),
        )  # fmt: skip
    decays.set(ylabel="weight", ylim=(0, 1.05))
    decays.set_title(f"tau = {TAU}; dots: out of the layer", fontsize=10)
    decays.legend()
    for (sensitivity, average), length in results["search_length"].items():
        lengths.plot(
            SEEN,
            length,
            color=f"C{SENSITIVITIES.index(sensitivity)}",
            ls=("-", "--", ":")[AVERAGES.index(average)],
            label=f"k = {sensitivity}, mean cosine {average}",
        )
    lengths.set(ylabel="search length", xscale="log", xlim=(1, SEEN[-1]))
    lengths.set_title(f"h = {HARDNESS}, lambda = {MARGIN}", fontsize=10)
    lengths.legend(fontsize=7)
    for axis in (number, decays, lengths):
        axis.set(xlabel="rows seen of the class, n")
    return figure


def main(argv=None):
    options = parse(__doc__, argv)
    results = compute()
    print("| n | E |", " | ".join(DECAYS.values()), "|")
    for n in (0, 1, 50, 100, 200, 300, 460, 600, 1000):
        row = [results[key][n] for key in ("effective", *DECAYS)]
        print(f"| {n} |", " | ".join(f"{value:.3f}" for value in row), "|")
    save(draw(results), options.output, "isa_decay")
    return results


if __name__ == "__main__":
    main()
