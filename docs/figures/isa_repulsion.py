"""What the negative weights of Proxy-ISA do to far negatives (equation 16).

python docs/figures/isa_repulsion.py --output FOLDER
"""

import numpy as np
from figure_tools import parse, save
from matplotlib.figure import Figure

from keras_dml.layers import SampleAwareProxies
from keras_dml.ops import sample_aware

COSINES = np.linspace(-1.0, 1.0, 401)
SEEN, LEARNED = 300.0, 0.1
# How far a row of this cosine repels is compared with one at the margin.
FAR = -0.8
FORMS = {
    "none": ("no weights: Proxy-Anchor", {"negative_weights": False}),
    "exponent": ("inside the exponent: the paper", {"weighting": "exponent"}),
    "summand": ("before the exponential", {"weighting": "summand"}),
}


def exponents(arguments):
    """What the layer gives rows of another class, by their cosine."""
    layer = SampleAwareProxies(2, initial_learned=LEARNED, **arguments)
    layer.build(((1, 2), (1,)))
    layer.similarity.proxies.assign(np.eye(2))
    layer.seen.assign([SEEN, SEEN])
    rows = np.stack([COSINES, np.sqrt(1 - COSINES**2)], axis=1)
    return np.array(layer([rows, np.ones(len(rows), "int32")]))[:, 0, 0]


def compute():
    """The exponents of the cosines in each of `FORMS`, and the cut.

    Returns:
        Dict: `exponents`, dict of arrays `(401,)`; `cut`, the cosine below
        which a weight is `1 / E`.
    """
    layer = SampleAwareProxies(2)
    effective = sample_aware.effective_number(np.float32(SEEN), layer.volume)
    length = sample_aware.search_length(
        LEARNED, effective, layer.sensitivity, layer.search_margin
    )
    return {
        "exponents": {
            form: exponents(arguments) for form, (_, arguments) in FORMS.items()
        },
        "cut": LEARNED - float(length),
    }


def draw(results):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for form, (name, _) in FORMS.items():
        axis.semilogy(COSINES, np.exp(results["exponents"][form]), label=name)
    axis.axvline(results["cut"], color="gray", ls="--", lw=1)
    axis.annotate(
        "cut",
        (results["cut"], 1e10),
        (4, 0),
        textcoords="offset points",
        color="gray",
    )
    axis.set(
        xlabel="cosine of a row and the proxy of another class",
        ylabel="exponential in the loss",
        xlim=(-1, 1),
    )
    axis.legend(title="where the weight stands", loc="upper left")
    return figure


def main(argv=None):
    options = parse(__doc__, argv)
    results = compute()
    far = np.searchsorted(COSINES, FAR)
    print(f"cut at {results['cut']:.3f}")
    for form, (name, _) in FORMS.items():
        value = np.exp(results["exponents"][form][far])
        print(f"{name}: {value:.2g} at a cosine of {FAR}")
    save(draw(results), options.output, "isa_repulsion")
    return results


if __name__ == "__main__":
    main()
