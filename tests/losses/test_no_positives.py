"""A batch in which no two rows belong together."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.callbacks import BatchCheck

X = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
LABELS = np.arange(6, dtype="int32")

PAIR_LOSSES = {
    name: losses.get(name)
    for name in losses.LOSSES
    if issubclass(losses.LOSSES[name], losses.PairLoss)
} | {
    "lifted_structure_pairs": losses.LiftedStructure(form="pairs"),
    "lifted_structure_distance": losses.LiftedStructure(form="distance"),
    "triplet_facenet": losses.Triplet(mining="facenet"),
    "triplet_hard": losses.Triplet(mining="hard", average="all"),
    "triplet_all": losses.Triplet(mining="all", swap=True),
    "multi_similarity_mined": losses.MultiSimilarity(mining_margin=0.1),
    "n_pair_without_l2": losses.NPair(l2=0.0),
}
# By their formulas these act on negatives, or keep rows short, for themselves.
NOT_ZERO = {
    "contrastive",
    "instance",
    "intra_pair_variance",
    "multi_similarity",
    "n_pair",
    "ranked_list",
    "signal_to_noise",
}


def predictions(loss):
    if not isinstance(loss, losses.Margin):
        return X
    return np.concatenate([X, np.full((6, 1), 1.2), np.zeros((6, 1))], axis=1)


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize("labels", [LABELS, np.eye(6, dtype="int32")])
def test_the_loss_is_zero_and_its_graph_connected(name, labels):
    loss = PAIR_LOSSES[name]
    x = tf.Variable(predictions(loss), dtype="float32")
    with tf.GradientTape() as tape:
        value = loss(labels, x)
    gradient = tape.gradient(value, x)
    # `None` would be a graph that is not connected.
    assert gradient is not None
    assert np.isfinite(gradient).all()
    if name in NOT_ZERO:
        assert value > 0
        assert np.any(gradient)
    else:
        assert value == 0
        assert not np.any(gradient)


def test_fit_goes_on_and_warns_once():
    x = keras.Input((4,))
    model = keras.Model(x, layers.EmbeddingHead(3, name="head")(x))
    model.compile("sgd", losses.Triplet())
    before = model.get_weights()
    data = tf.data.Dataset.from_tensor_slices((X, LABELS)).batch(3)
    messages = []
    check = BatchCheck(
        lambda epoch: [labels for _, labels in data], warn=messages.append
    )
    history = model.fit(
        data, epochs=3, verbose=0, shuffle=False, callbacks=[check]
    )
    assert history.history["loss"] == [0.0] * 3
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(messages) == 1
    assert "no positive pair" in messages[0]
    assert "Sample several images of each class" in messages[0]
