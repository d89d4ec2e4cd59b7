"""Ours against the numbers of open-metric-learning 4.0.0."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses, miners
from keras_dml.layers import Proxies
from tests.parity.batches import CLASSES, batches, load, proxies

KEPT = load(Path(__file__).parent, "open_metric_learning.npz")
TRIPLET = {
    "distance": "euclidean",
    "average": "all",
    "normalize": False,
    "dtype": "float64",
}


def arc_face(labels, x):
    layer = Proxies(CLASSES, dtype="float64")
    layer.build(x.shape)
    layer.set_weights([proxies(x.shape[1])])
    return losses.ArcFace(0.5, 64.0, dtype="float64")(labels, layer(x))


def plain(labels, x):
    """The rows that are left over are of no triplet."""
    rows = len(labels) // 3 * 3
    loss = losses.Triplet(0.2, "all", miner=miners.Given(), **TRIPLET)
    return loss(labels[:rows], x[:rows])


OURS = {
    "triplet_all": losses.Triplet(0.2, "all", **TRIPLET),
    "triplet_hard": losses.Triplet(0.2, "hard", **TRIPLET),
    "triplet_all_soft": losses.Triplet(0.2, "all", soft=True, **TRIPLET),
    "triplet_hard_soft": losses.Triplet(0.2, "hard", soft=True, **TRIPLET),
    "triplet_plain": plain,
    "arc_face": arc_face,
}
OURS |= {
    name.replace("hard", "n_hard_of_one"): loss
    for name, loss in OURS.items()
    if "hard" in name
}


def test_every_kept_loss_is_compared():
    assert all(kept.keys() == OURS.keys() for kept in KEPT.values())


@pytest.mark.parametrize("batch", KEPT)
@pytest.mark.parametrize("name", OURS)
def test_values_and_gradients(batch, name):
    labels, x = batches()[batch]
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        value = OURS[name](labels, x)
    gradient = tf.convert_to_tensor(tape.gradient(value, x))
    wanted = KEPT[batch][name]
    np.testing.assert_allclose(value, wanted["value"], rtol=1e-5)
    largest = abs(wanted["gradient"]).max()
    assert largest > 1e-4
    np.testing.assert_allclose(
        gradient, wanted["gradient"], atol=1e-5 * largest
    )
