"""Ours against the numbers of pytorch-metric-learning 2.9.0: proxy losses.

Theirs own the proxies; ours take the output of the layer that owns them.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses, regularizers
from tests.parity.batches import CLASSES, batches, load, proxies

KEPT = load(Path(__file__).parent, "pytorch_metric_learning_proxies.npz")

# The loss; of the layer the metric, the centers, and the scale of its output.
OURS = {
    "proxy_anchor": (losses.ProxyAnchor, {}, "cosine", 1, 1.0),
    # Theirs has the positive in the denominator: it is ProxyNCA++.
    "proxy_nca": (
        losses.ProxyNCAPlusPlus,
        {},
        "neg_squared_euclidean",
        1,
        1.0,
    ),
    "proxy_nca_scaled": (
        losses.ProxyNCAPlusPlus,
        {},
        "neg_squared_euclidean",
        1,
        9.0,
    ),
    "normalized_softmax": (losses.NormalizedSoftmax, {}, "cosine", 1, 20.0),
    # Their margin is in degrees.
    "arc_face": (
        losses.ArcFace,
        {"margin": math.radians(28.6)},
        "cosine",
        1,
        1.0,
    ),
    "arc_face_wide": (
        losses.ArcFace,
        {"margin": math.radians(120.0), "scale": 8.0},
        "cosine",
        1,
        1.0,
    ),
    "cos_face": (losses.CosFace, {}, "cosine", 1, 1.0),
    "sub_center_arc_face": (
        losses.SubCenterArcFace,
        {"margin": math.radians(28.6)},
        "cosine",
        3,
        1.0,
    ),
    "soft_triple": (losses.SoftTriple, {}, "cosine", 3, 1.0),
    # Below the root of a distance ours adds 1e-5, as the authors of the paper,
    # and theirs next to nothing: only equal centers differ.
    "soft_triple_regularized": (losses.SoftTriple, {}, "cosine", 3, 1.0),
    "sphere_face": (losses.SphereFace, {"scale": 8.0}, "cosine", 1, 1.0),
    "large_margin_softmax": (
        losses.LargeMarginSoftmax,
        {"margin": 3, "scale": 0.5},
        "dot",
        1,
        1.0,
    ),
    "p2s_grad": (losses.P2SGrad, {}, "cosine", 1, 1.0),
    "manifold": (losses.Manifold, {"margin": 0.1}, "manifold", 1, 1.0),
}


def ours(name, labels, x):
    """Value, gradient by the embeddings, gradient by the proxies."""
    cls, arguments, metric, centers, scale = OURS[name]
    regularizer = None
    if name.endswith("regularized"):
        regularizer = regularizers.CenterDistance(0.2)
    # Of their losses one alone keeps the lengths of rows and proxies.
    keeps_lengths = metric == "dot"
    layer = (
        layers.ManifoldSimilarities(CLASSES, dtype="float64")
        if metric == "manifold"
        else layers.Proxies(
            CLASSES,
            metric,
            centers,
            unit_proxies=not keeps_lengths,
            lengths=keeps_lengths,
            regularizer=regularizer,
            dtype="float64",
        )
    )
    layer.build(x.shape)
    weights = proxies(x.shape[1], centers)
    layer.set_weights([weights.reshape(layer.proxies.shape)])
    scaled = layers.ScaledLogits(scale, dtype="float64")
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        similarities = layer(x)
        if scale != 1.0:
            similarities = scaled(similarities)
        value = cls(**arguments, dtype="float64")(labels, similarities)
        value += sum(layer.losses)
    by_rows, by_proxies = tape.gradient(value, [x, layer.proxies.value])
    return value, by_rows, ops.reshape(by_proxies, weights.shape)


def theirs(batch, name, centers):
    wanted = KEPT[batch][name]
    by_proxies = wanted["proxies"]
    # Most keep a column for each proxy.
    by_row = ("proxy_anchor", "proxy_nca", "proxy_nca_scaled", "manifold")
    if name not in by_row:
        by_proxies = by_proxies.T
    found = wanted["value"], wanted["gradient"], by_proxies
    return of_p2s_grad(*found) if name == "p2s_grad" else found


def of_p2s_grad(value, by_rows, by_proxies):
    """Theirs is a mean over classes too, and its proxies have length one.

    It normalizes them outside of the gradient, which so keeps a part along the
    proxy; ours has none, and is by proxies of any length.
    """
    weights = proxies(by_proxies.shape[1])
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = weights / lengths
    along = np.sum(by_proxies * unit, axis=1, keepdims=True) * unit
    by_proxies = (by_proxies - along) / lengths
    return CLASSES * value, CLASSES * by_rows, CLASSES * by_proxies


def test_every_proxy_loss_of_theirs_that_is_kept_has_one_of_ours():
    assert all(kept.keys() == OURS.keys() for kept in KEPT.values())


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", OURS)
def test_values_and_gradients(batch, name):
    labels, x = batches()[batch]
    actual = ours(name, labels, x)
    wanted = theirs(batch, name, OURS[name][3])
    np.testing.assert_allclose(actual[0], wanted[0], rtol=1e-5)
    for gradient, expected in zip(actual[1:], wanted[1:], strict=True):
        largest = abs(expected).max()
        assert largest > 1e-4
        np.testing.assert_allclose(gradient, expected, atol=1e-5 * largest)


def test_the_wide_margin_reaches_the_part_beyond_a_half_turn():
    """Both fall back to `cos(theta) - m sin(m)` there."""
    labels, x = batches()["balanced"]
    weights = proxies(x.shape[1])[labels]
    cosines = np.sum(x * weights, axis=1) / (
        np.linalg.norm(x, axis=1) * np.linalg.norm(weights, axis=1)
    )
    beyond = np.degrees(np.arccos(cosines)) + 120.0 > 180.0
    assert 0 < beyond.sum() < len(beyond)


def test_proxy_nca_of_the_first_paper_is_another_loss():
    """It leaves the positive out of the denominator; theirs does not."""
    labels, x = batches()["balanced"]
    layer = layers.Proxies(CLASSES, "neg_squared_euclidean", dtype="float64")
    layer.build(x.shape)
    layer.set_weights([proxies(x.shape[1])])
    value = losses.ProxyNCA(dtype="float64")(labels, layer(x))
    assert float(value) < KEPT["balanced"]["proxy_nca"]["value"] - 0.1
