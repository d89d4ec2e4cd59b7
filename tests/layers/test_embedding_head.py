import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.layers import EmbeddingHead
from tests.conformance import check_layer, to_numpy

X = np.random.default_rng(0).standard_normal((6, 8)).astype("float32") + 2


@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
def test_layer(normalization, policy, tmp_path):
    arguments = {"dim": 5, "normalization": normalization}
    check_layer(EmbeddingHead, arguments, X, (6, 5), tmp_path)


def test_computes_in_float32_under_any_policy(policy):
    head = EmbeddingHead(5, normalization="batch_norm")
    assert head(X.astype("float16")).dtype == "float32"
    assert {layer.compute_dtype for layer in head._flatten_layers()} == {
        "float32"
    }


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("normalization", [None, "l2"])
def test_formula(layer_norm, normalization):
    head = EmbeddingHead(5, layer_norm, normalization)
    head.build(X.shape)
    kernel, bias = head.get_weights()
    features = X.astype("float64")
    if layer_norm:
        features -= features.mean(axis=1, keepdims=True)
        features /= np.sqrt((features**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = features @ kernel + bias
    if normalization == "l2":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(head(X), expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_has_a_centre_and_neither_scale_nor_bias():
    keras.utils.set_random_seed(0)
    head = EmbeddingHead(5, normalization="batch_norm", name="head")
    head.build(X.shape)
    paths = [variable.path for variable in head.trainable_variables]
    assert paths == ["head/projection/kernel", "head/batch_norm/beta"]
    trained = to_numpy(head(X, training=True))
    np.testing.assert_allclose(trained.mean(axis=0), 0, atol=1e-6)
    # Unit variance of each of dim entries, divided by dim.
    np.testing.assert_allclose((trained**2).sum(axis=1).mean(), 1, rtol=1e-2)


def test_epsilon_is_added_to_the_variance():
    head = EmbeddingHead(5, False, "batch_norm", batch_norm_epsilon=0.1)
    head.build(X.shape)
    # The moving variance is 1, and each entry is divided by the root of dim.
    expected = X @ head.get_weights()[0] / np.sqrt(1.1 * 5)
    np.testing.assert_allclose(head(X), expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_statistics_follow_with_the_given_momentum():
    head = EmbeddingHead(
        5, normalization="batch_norm", batch_norm_momentum=0.75
    )
    head(X, training=True)
    kernel, _, moving_mean, _ = head.get_weights()
    plain = EmbeddingHead(5, use_bias=False)
    plain.build(X.shape)
    plain.set_weights([kernel])
    projected = to_numpy(plain(X))
    np.testing.assert_allclose(
        moving_mean, 0.25 * projected.mean(axis=0), rtol=1e-4, atol=1e-6
    )


def test_paths_belong_to_the_group_of_the_head():
    x = keras.Input((8,))
    model = keras.Model(x, EmbeddingHead(5, name="head")(x))
    assert [variable.path for variable in model.variables] == [
        "head/projection/kernel",
        "head/projection/bias",
    ]


def test_weights_start_as_those_of_a_torch_linear_layer():
    head = EmbeddingHead(4000)
    head.build((None, 16))
    for weight in head.get_weights():
        assert 0.249 < np.abs(weight).max() <= 0.25


@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
def test_gradient_is_finite_at_zero_features(normalization):
    head = EmbeddingHead(5, normalization=normalization, use_bias=False)
    x = tf.Variable(np.zeros((4, 8), "float32"))
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(head(x, training=True) ** 2)
    assert np.isfinite(value)
    assert np.isfinite(tape.gradient(value, x)).all()


def test_errors():
    with pytest.raises(ValueError, match="`dim` must.*Received: dim=0"):
        EmbeddingHead(0)
    with pytest.raises(ValueError, match="Received: normalization='l1'"):
        EmbeddingHead(4, normalization="l1")
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=4"):
        EmbeddingHead(4)(np.ones((2, 3, 3, 4), "float32"))
    with pytest.raises(ValueError, match="Unknown kernel initializer 'he'"):
        EmbeddingHead(4, kernel_initializer="he")


def test_a_whitening_needs_what_subtracts_the_mean():
    features, labels = np.ones((4, 8), "float32"), np.array([0, 0, 1, 1])
    head = EmbeddingHead(2, use_bias=False)
    with pytest.raises(ValueError, match="`use_bias` must be True to start as"):
        head.assign_whitening(features, labels)


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_whitening_refuses_what_is_not_finite(lost):
    features, labels = np.eye(4, 8), np.array([0, 0, 1, 1])
    features[2, 3] = lost
    head = EmbeddingHead(2)
    with pytest.raises(UsageError, match="`features` must be finite"):
        head.assign_whitening(features, labels)
    with pytest.raises(UsageError, match="`features` must .*one row"):
        head.assign_whitening(features[:0], labels[:0])


@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
def test_whitening_separates_classes_that_it_has_not_seen(normalization):
    generator = np.random.default_rng(0)
    mixing = generator.normal(size=(8, 16))

    def draw():
        centers = generator.normal(size=(10, 8))
        labels = np.repeat(np.arange(10), 20)
        spread = np.array([9.0, 9.0] + [0.4] * 6)
        noise = generator.normal(size=(200, 8)) * spread
        return ((centers[labels] + noise) @ mixing).astype("float32"), labels

    def map_at_r(embeddings, labels):
        result = evaluate_retrieval(to_numpy(embeddings), labels)
        return result.metrics["map@r"]

    head = EmbeddingHead(8, normalization=normalization)
    features, labels = draw()
    unseen = draw()
    before = map_at_r(head(unseen[0]), unseen[1])
    head.assign_whitening(features, labels, shrinkage=0.1)
    assert map_at_r(head(unseen[0]), unseen[1]) > before + 0.2


def test_whitening_keeps_the_length_of_fresh_embeddings():
    features = np.random.default_rng(0).normal(size=(300, 40))
    head = EmbeddingHead(12)
    fresh = np.linalg.norm(to_numpy(head(features)), axis=1).mean()
    head.assign_whitening(features, np.arange(300) // 10)
    length = np.linalg.norm(to_numpy(head(features)), axis=1).mean()
    np.testing.assert_allclose(length, fresh, rtol=0.1)


@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
@pytest.mark.parametrize("size", [2, 5, 9])
def test_a_prefix_is_what_a_cut_head_gives(normalization, size):
    head = EmbeddingHead(5, normalization=normalization)
    embeddings = head(X)
    np.testing.assert_allclose(
        to_numpy(head.prefix(embeddings, size)),
        to_numpy(head.cut(size)(X)),
        atol=1e-5,
    )
