import keras
import numpy as np
import pytest

from keras_dml import layers, losses

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5))
LABELS = np.array([0, 1, 2, 3, 1, 0], "int32")


def test_groups_have_the_means_of_the_proxies_of_their_classes():
    """With inner products: a group's column is that of the mean proxy."""
    proxies = layers.Proxies(4, metric="dot", unit_proxies=False)
    similarities = keras.ops.convert_to_numpy(proxies(X.astype("float32")))
    weights = keras.ops.convert_to_numpy(proxies.proxies)
    means = np.stack(
        [weights[[0, 3]].mean(axis=0), weights[[1, 2]].mean(axis=0)]
    )
    wanted = losses.Softmax()(LABELS, similarities) + 0.5 * losses.Softmax()(
        np.array([0, 1, 1, 0, 1, 0]), (X @ means.T).astype("float32")
    )
    loss = losses.OnGroups(losses.Softmax(), [0, 1, 1, 0], weight=0.5)
    np.testing.assert_allclose(loss(LABELS, similarities), wanted, rtol=1e-5)


def test_every_level_counts():
    logits = RNG.standard_normal((6, 4))
    softmax = losses.Softmax(dtype="float64")
    fine, coarse = [0, 0, 1, 2], [0, 0, 0, 1]

    def on(groups):
        loss = losses.OnGroups(softmax, groups, dtype="float64")
        return loss(LABELS, logits) - softmax(LABELS, logits)

    np.testing.assert_allclose(on([fine, coarse]), on(fine) + on(coarse))


def test_a_loss_that_compares_rows_works_too():
    """Proxy-Anchor on two groups, by hand."""
    cosines = RNG.uniform(-1, 1, (6, 4))
    anchor = losses.ProxyAnchor(dtype="float64")
    loss = losses.OnGroups(anchor, [0, 0, 1, 1], 2.0, dtype="float64")
    coarse = np.stack(
        [cosines[:, :2].mean(axis=1), cosines[:, 2:].mean(axis=1)], axis=1
    )
    wanted = anchor(LABELS, cosines) + 2.0 * anchor(LABELS // 2, coarse)
    np.testing.assert_allclose(loss(LABELS, cosines), wanted)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: losses.OnGroups(losses.Contrastive(), [0, 1]),
            "`loss` must take logits.*'contrastive', which takes embeddings",
        ),
        (
            lambda: losses.OnGroups("sparse_categorical_crossentropy", [0, 1]),
            "`loss` must be a loss object.*'sparse_categorical_crossentropy'",
        ),
        (
            lambda: losses.WeightedSum(["sparse_categorical_crossentropy"]),
            "`loss` must be a loss object",
        ),
        (
            lambda: losses.OnGroups(losses.Softmax(), None),
            "`groups` must be the group of each class",
        ),
        (
            lambda: losses.OnGroups(losses.Softmax(), [0, 1], weight=-1),
            "`weight`.*weight=-1",
        ),
        (
            lambda: losses.OnGroups(losses.Softmax(), [0, 1, 1])(
                LABELS, X[:, :4]
            ),
            "3 entries and 4 classes",
        ),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
