"""What `SampleAwareProxies` gives, from cosines and weights by loops."""

import numpy as np


def join(
    labels, similarities, weights, scale=32.0, margin=0.1, weighting="exponent"
):
    """The tensor `(rows, 1, classes + 3)`, in float64."""
    rows, classes = similarities.shape
    output = np.full((rows, 1, classes + 3), -np.inf)
    if weighting == "summand":
        ones = np.ones_like(weights)
        output = join(labels, similarities, ones, scale, margin)
        for i, c in np.ndindex(rows, classes):
            column = c if labels[i] != c else classes
            # The exponential has the weight as a factor.
            summand = weights[i, c] * np.exp(output[i, 0, column])
            output[i, 0, column] = np.log(summand)
        return output
    total = 0.0
    for c in range(classes):
        others = [weights[i, c] for i in range(rows) if labels[i] != c]
        total += np.mean(others) if others else 0.0
    for i, c in np.ndindex(rows, classes):
        s, w = similarities[i, c], weights[i, c]
        if labels[i] != c:
            output[i, 0, c] = w * scale * (s + margin)
        else:
            output[i, 0, classes] = w * scale * (margin - s)
            output[i, 0, classes + 1] = w
        output[i, 0, classes + 2] = total
    return output
