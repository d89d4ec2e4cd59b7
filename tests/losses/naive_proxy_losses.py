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


def cross_entropy(labels, logits):
    values = []
    for label, row in zip(labels, logits, strict=True):
        total = sum(np.exp(value - row[label]) for value in row)
        values.append(np.log(total))
    return np.array(values)


def arcface(
    labels, similarities, margin=0.5, scale=64.0, straight_through=False
):
    """By the angle, which the library never computes."""
    logits = similarities.astype("float64").copy()
    for i, label in enumerate(labels):
        theta = np.arccos(logits[i, label])
        if theta + margin < np.pi:
            logits[i, label] = np.cos(theta + margin)
        else:
            logits[i, label] -= margin * np.sin(margin)
    return cross_entropy(labels, scale * logits)


def sphereface(labels, similarities, margin=4, scale=64.0):
    """By the angle, which the library never computes."""
    logits = similarities.astype("float64").copy()
    for i, label in enumerate(labels):
        theta = np.arccos(logits[i, label])
        turns = np.floor(margin * theta / np.pi)
        logits[i, label] = (-1) ** turns * np.cos(margin * theta) - 2 * turns
    return cross_entropy(labels, scale * logits)


def large_margin_softmax(labels, y_pred, margin=4, scale=1.0):
    logits, lengths = np.moveaxis(np.array(y_pred, "float64"), 2, 0)
    for i, label in enumerate(labels):
        theta = np.arccos(logits[i, label] / lengths[i, label])
        turns = np.floor(margin * theta / np.pi)
        value = (-1) ** turns * np.cos(margin * theta) - 2 * turns
        logits[i, label] = lengths[i, label] * value
    return cross_entropy(labels, scale * logits)


def p2s_grad(labels, similarities):
    own = np.eye(similarities.shape[1])[labels]
    return np.sum((similarities - own) ** 2, axis=1)


def manifold(labels, similarities, margin=5e-4, context_weight=1.0):
    terms = np.zeros((len(labels), 2))
    for i, kind in np.ndindex(terms.shape):
        row = similarities[i, :, kind]
        excess = [
            s - row[labels[i]] + margin
            for p, s in enumerate(row)
            if p != labels[i]
        ]
        terms[i, kind] = np.log1p(sum(np.exp(e) for e in excess if e >= 0))
    return terms @ [1.0, context_weight]


def cosface(labels, similarities, margin=0.35, scale=64.0):
    logits = similarities.copy()
    for i, label in enumerate(labels):
        logits[i, label] -= margin
    return cross_entropy(labels, scale * logits)


def soft_triple(labels, similarities, margin=0.01, scale=20.0, gamma=10.0):
    rows, classes = similarities.shape[:2]
    merged = np.zeros((rows, classes))
    for i, c in np.ndindex(rows, classes):
        centers = np.atleast_1d(similarities[i, c])
        shares = np.exp(gamma * centers)
        merged[i, c] = np.sum(shares / shares.sum() * centers)
    return cosface(labels, merged, margin, scale)


def sub_center_arcface(labels, similarities, margin=0.5, scale=64.0):
    return arcface(labels, similarities.max(axis=2), margin, scale)


def mutual_repulsion(products, scale, margin):
    count = len(products)
    value = 0.0
    for c in range(count):
        exponents = [
            scale * (products[c, k] + margin) for k in range(count) if k != c
        ]
        value += soft_maximum(exponents) / count
    return value


def our_loss_1(labels, similarities, scale=32.0, margin=0.1):
    present = sorted(set(labels.tolist()))
    value = 0.0
    for c in present:
        own = [i for i in range(len(labels)) if labels[i] == c]
        exponents = [-scale * (similarities[i, c] - margin) for i in own]
        value += soft_maximum(exponents) / len(present)
    return np.full(len(labels), value)


def our_loss_2(
    labels, similarities, scale=32.0, margin=0.1, reduction_over_batch="sum"
):
    classes = similarities.shape[1]
    products = np.zeros((classes, classes))
    for row in similarities:
        products += np.outer(row, row)
    if reduction_over_batch == "mean":
        products /= len(similarities)
    value = our_loss_1(labels, similarities, scale, margin)
    return value + mutual_repulsion(products, scale, margin)


def proxy_isa(labels, similarities, scale=32.0, margin=0.1):
    """With cosines and weights `(rows, 2, classes)`."""
    s, w = similarities[:, 0], similarities[:, 1]
    rows, classes = s.shape
    values, divisors = [0.0, 0.0], [0.0, 0.0]
    for c in range(classes):
        own = [i for i in range(rows) if labels[i] == c]
        others = [i for i in range(rows) if labels[i] != c]
        for part, sign, chosen in ((0, -1, own), (1, 1, others)):
            if chosen:
                values[part] += soft_maximum(
                    w[i, c] * scale * (margin + sign * s[i, c]) for i in chosen
                )
                divisors[part] += np.mean([w[i, c] for i in chosen])
    value = sum(v / d for v, d in zip(values, divisors, strict=True) if d)
    return np.full(rows, value)


def proxynca(labels, logits):
    values = []
    for label, row in zip(labels, logits, strict=True):
        others = [np.exp(z - row[label]) for z in np.delete(row, label)]
        values.append(np.log(sum(others)))
    return np.array(values)


def proxynca_isa(labels, s, w, scale=12.0, margin=0.0):
    """With cosines and weights, both `(rows, classes)`."""
    values = []
    for i, label in enumerate(labels):
        others = [
            np.exp(w[i, c] * scale * (s[i, c] + margin))
            for c in range(s.shape[1])
            if c != label
        ]
        own = w[i, label] * scale * (margin - s[i, label])
        values.append(own + np.log(sum(others)))
    return np.array(values)
