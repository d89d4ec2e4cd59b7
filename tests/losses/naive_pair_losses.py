"""The pair losses from their formulas: one pair at a time, in float64.

Each takes the boolean matrices of positive and negative pairs, and the
embeddings, and gives the loss of the batch.
"""

import math

import numpy as np


def unit(x):
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(lengths > 0, lengths, 1.0)


def masks(labels):
    same = labels[:, None] == labels[None, :]
    itself = np.eye(len(labels), dtype=bool)
    return same & ~itself, ~same & ~itself


def columns(mask, i):
    return [int(j) for j in np.flatnonzero(mask[i])]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def multi_similarity(positive, negative, x, mining=None):
    x, values = unit(x), []
    for i in range(len(x)):
        p = [x[i] @ x[j] for j in columns(positive, i)]
        n = [x[i] @ x[j] for j in columns(negative, i)]
        if mining is not None:
            lowest, highest = min(p, default=np.inf), max(n, default=-np.inf)
            p = [s for s in p if s - mining < highest]
            n = [s for s in n if s + mining > lowest]
        values.append(
            math.log(1 + sum(math.exp(-2 * (s - 0.5)) for s in p)) / 2
            + math.log(1 + sum(math.exp(50 * (s - 0.5)) for s in n)) / 50
        )
    return mean(values)
