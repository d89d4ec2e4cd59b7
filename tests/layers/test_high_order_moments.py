import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from keras_dml.layers import HighOrderMoments, high_order_moments
from tests.conformance import roundtrip, to_numpy

RNG = np.random.default_rng(0)
MAPS = RNG.standard_normal((3, 2, 4, 5)).astype("float32")
EMBEDDINGS = RNG.standard_normal((3, 6)).astype("float32")


def loops(features, projections):
    """The moments of each image, position by position."""
    orders = []
    for order in range(2, len(projections) + 1):
        rows = []
        for image in features:
            products = []
            for x in image:
                product = 1.0
                for weights in projections[:order]:
                    product = product * (x @ weights)
                products.append(product)
            rows.append(np.mean(products, axis=0))
        orders.append(rows)
    return np.array(orders)


def test_moments_against_loops():
    features = MAPS.reshape(3, 8, 5).astype("float64")
    projections = RNG.standard_normal((4, 5, 7))
    found = high_order_moments(features, projections)
    np.testing.assert_allclose(found, loops(features, projections), rtol=1e-9)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_products_of_moments_are_powers_of_products(order):
    """In expectation over the signs, by the theorem of random features."""
    x, y = RNG.standard_normal((2, 3, 2))
    signs = np.sign(RNG.standard_normal((4, 2, 400_000)))
    features = np.stack([x, y])
    a, b = np.array(high_order_moments(features, signs)[order - 2])
    wanted = np.mean((x @ y.T) ** order)
    deviation = np.std(a * b) / np.sqrt(signs.shape[-1])
    assert abs(np.mean(a * b) - wanted) < 5 * deviation
    assert deviation < 0.1


def test_the_layer_embeds_each_moment():
    layer = HighOrderMoments(orders=3, projections=7)
    found = to_numpy(layer([EMBEDDINGS, MAPS]))
    random = to_numpy(layer.random)
    assert set(random.ravel()) == {-1.0, 1.0}
    np.testing.assert_array_equal(found[:, :6], EMBEDDINGS)
    moments = loops(MAPS.reshape(3, 8, 5), random)
    for order, moment in enumerate(moments, 1):
        kernel = to_numpy(layer.kernels[order - 1])
        np.testing.assert_allclose(
            found[:, 6 * order : 6 * order + 6], moment @ kernel, atol=1e-4
        )


def test_tokens_are_positions_too():
    layer = HighOrderMoments(orders=3, projections=7)
    np.testing.assert_array_equal(
        layer([EMBEDDINGS, MAPS.reshape(3, 8, 5)]), layer([EMBEDDINGS, MAPS])
    )


@pytest.mark.parametrize("trained, number", [(False, 2), (True, 3)])
def test_projections_are_trained_on_demand(trained, number):
    layer = HighOrderMoments(3, 7, train_projections=trained)
    layer.build([(None, 6), (None, 2, 4, 5)])
    assert len(layer.trainable_weights) == number
    assert roundtrip(layer).train_projections is trained


def test_trained_projections_of_each_order_begin_like_a_dense_layer():
    layer = HighOrderMoments(5, 256, train_projections=True)
    layer.build([(None, 6), (None, 2, 4, 64)])
    random = to_numpy(layer.random)
    deviation = np.sqrt(2 / (64 + 256))
    np.testing.assert_allclose(random.std(axis=(1, 2)), deviation, rtol=0.03)
    correlations = np.corrcoef(random.reshape(5, -1)) - np.eye(5)
    assert np.abs(correlations).max() < 0.05


def trainer():
    keras.utils.set_random_seed(0)
    image = keras.Input((4, 4, 3))
    maps = keras.layers.Conv2D(5, 3, activation="relu")(image)
    pooled = keras.layers.GlobalAveragePooling2D()(maps)
    embedding = layers.EmbeddingHead(6, name="head")(pooled)
    outputs = HighOrderMoments(3, 16, name="moments")([embedding, maps])
    model = keras.Model(image, outputs)
    model.compile("sgd", losses.OnMoments(losses.Contrastive(), 3))
    return model


def train(model):
    rng = np.random.default_rng(1)
    images = rng.standard_normal((16, 4, 4, 3)).astype("float32")
    labels = np.arange(16, dtype="int32") % 4
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)
    history = model.fit(data, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], model.get_weights()


@pytest.mark.slow
def test_replicas_do_not_change_training(strategy):
    wanted_loss, wanted = train(trainer())
    with strategy.scope():
        loss, weights = train(trainer())
    np.testing.assert_allclose(loss, wanted_loss, rtol=1e-4)
    for a, w in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(a, w, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_a_trained_model_is_saved_and_loaded(tmp_path):
    model = trainer()
    train(model)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    images = np.ones((2, 4, 4, 3), "float32")
    np.testing.assert_allclose(revived(images), model(images), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"orders": 1}, "`orders` must be an integer of at least 2.*orders=1"),
        ({"projections": 0}, "`projections`.*projections=0"),
        ({"train_projections": 1}, "`train_projections`.*=1"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        HighOrderMoments(**arguments)


def test_pooled_features_are_refused():
    with pytest.raises(ValueError, match=r"before pooling.*\(3, 5\)"):
        HighOrderMoments(3, 7)([EMBEDDINGS, MAPS[:, 0, 0]])


def test_one_tensor_is_refused():
    with pytest.raises(ValueError, match=r"takes the list \[embeddings, feat"):
        HighOrderMoments(3, 7)(EMBEDDINGS)


def test_the_loss_refuses_columns_that_are_not_of_its_orders():
    with pytest.raises(ValueError, match=r"\(batch, 5 \* dim\).*\(3, 6\)"):
        losses.OnMoments(losses.Contrastive())(np.array([0, 0, 1]), EMBEDDINGS)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "mixed_float16"])
def test_any_dtype(dtype):
    layer = HighOrderMoments(orders=3, projections=7, dtype=dtype)
    found = layer([EMBEDDINGS, MAPS])
    assert keras.backend.standardize_dtype(found.dtype) == layer.compute_dtype
    assert set(to_numpy(layer.random).ravel()) == {-1.0, 1.0}
