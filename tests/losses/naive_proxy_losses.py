"""Proxy losses from their formulas: one pair at a time, in float64."""

import numpy as np


def soft_maximum(values):
    """`log(1 + sum exp(z))`; Python's floats do not overflow here."""
    return np.log1p(sum(np.exp(value) for value in values))


def proxy_anchor(labels, similarities, scale=32.0, margin=0.1):
    rows, classes = similarities.shape
    present = sorted(set(labels.tolist()))
    value = 0.0
    for c in present:
        own = [i for i in range(rows) if labels[i] == c]
        exponents = [-scale * (similarities[i, c] - margin) for i in own]
        value += soft_maximum(exponents) / len(present)
    for c in range(classes):
        others = [i for i in range(rows) if labels[i] != c]
        exponents = [scale * (similarities[i, c] + margin) for i in others]
        value += soft_maximum(exponents) / classes
    return np.full(rows, value)
