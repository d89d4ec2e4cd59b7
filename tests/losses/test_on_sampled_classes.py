import numpy as np
import pytest

from keras_dml import losses

RNG = np.random.default_rng(0)


def test_columns_are_the_classes_of_the_batch_in_their_order():
    labels = np.array([70, 7, 70, 12], "int32")
    logits = RNG.standard_normal((4, 6)).astype("float32")
    found = losses.OnSampledClasses(losses.Softmax())(labels, logits)
    wanted = losses.Softmax()(np.array([2, 0, 2, 1], "int32"), logits)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_sample_weights_are_those_of_rows():
    labels = np.array([5, 3], "int32")
    logits = RNG.standard_normal((2, 4)).astype("float32")
    loss = losses.OnSampledClasses(losses.Softmax(), reduction="sum")
    found = loss(labels, logits, sample_weight=np.array([0.0, 2.0]))
    wanted = 2 * losses.softmax_loss(np.array([0]), logits[1:])[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    "loss", [losses.Triplet(), losses.ProxyISA(), losses.Margin()]
)
def test_losses_that_take_something_else_are_refused(loss):
    with pytest.raises(ValueError, match=f"{loss.name}.*which takes"):
        losses.OnSampledClasses(loss)


def test_labels_must_be_integers_and_no_rows():
    loss = losses.OnSampledClasses(losses.Softmax())
    with pytest.raises(ValueError, match="integer class labels"):
        loss(np.zeros(2, "float32"), np.zeros((2, 3), "float32"))
    with pytest.raises(ValueError, match="one-hot"):
        loss(np.zeros((2, 3), "int32"), np.zeros((2, 3), "float32"))
