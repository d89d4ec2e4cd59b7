import numpy as np
import pytest

from keras_dml import losses

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4))
COLUMN = RNG.uniform(0.0, 2.0, (6, 1))
Y_PRED = np.concatenate([X, COLUMN], axis=1)
LABELS = np.array([0, 1, 1, 0, 2, 0], "int32")


def test_adds_the_column_to_the_loss_of_every_row():
    x = Y_PRED.astype("float32")
    loss = losses.WithMemory(losses.MultiSimilarity(), reduction="none")
    alone = losses.MultiSimilarity(reduction="none")(LABELS, x[:, :-1])
    np.testing.assert_allclose(loss(LABELS, x), alone + x[:, -1], rtol=1e-6)


def test_a_matrix_of_pairs_may_stand_for_the_labels():
    loss = losses.WithMemory(losses.Contrastive())
    same = LABELS[:, None] == LABELS[None, :]
    np.testing.assert_array_equal(loss(same, Y_PRED), loss(LABELS, Y_PRED))


@pytest.mark.parametrize(
    "labels, y_pred, message",
    [
        (LABELS.astype("float32"), Y_PRED, "'with_memory'.*integer"),
        (np.eye(4, dtype="int32")[LABELS], Y_PRED, "one-hot.*argmax"),
        (LABELS[:5], Y_PRED, r"same number of rows.*\(5,\)"),
        (LABELS, Y_PRED[:, :, None], r"`y_pred`.*Received: .*\(6, ., 1\)"),
    ],
)
def test_refused_input(labels, y_pred, message):
    with pytest.raises(ValueError, match=message):
        losses.WithMemory(losses.Contrastive())(labels, y_pred)
