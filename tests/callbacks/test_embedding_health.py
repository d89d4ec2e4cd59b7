import keras
import numpy as np
import pytest
from keras import ops

from keras_dml import evaluation, layers
from keras_dml.callbacks import EmbeddingHealth, RetrievalEvaluation
from tests.callbacks.small_trainer import DATA, LABELS, batches, build, fit


class PullTogether(keras.losses.Loss):
    """Half of a contrastive loss: the half that collapses."""

    def call(self, y_true, y_pred):
        labels = ops.reshape(y_true, (-1, 1))
        same = ops.cast(labels == ops.transpose(labels), "float32")
        distance = 1.0 - ops.matmul(y_pred, ops.transpose(y_pred))
        return ops.mean(same * distance, axis=1)


def trained(make_layers, loss, epochs, learning_rate=0.02):
    """Warnings and history of a training of some layers on the small data."""
    # Initializers draw their seeds when a layer is made.
    keras.utils.set_random_seed(0)
    unit = keras.layers.UnitNormalization()
    model = keras.Sequential([keras.Input((6,)), *make_layers(), unit])
    model.compile(keras.optimizers.Adam(learning_rate), loss)
    retrieval = RetrievalEvaluation(model, batches())
    found = []
    health = EmbeddingHealth(retrieval, warn=found.append)
    return found, fit(model, epochs, [retrieval, health])


def test_the_logs_hold_the_health_of_every_epoch():
    trainer, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches(), prefix="unseen_")
    callback = EmbeddingHealth(retrieval, trainer.get_layer("proxies"))
    history = fit(trainer, 3, [retrieval, callback])
    expected = evaluation.embedding_health(
        np.asarray(embedder(DATA)),
        LABELS,
        trainer.get_layer("proxies").get_weights()[0],
    )
    assert callback.health == pytest.approx(expected, abs=1e-5)
    assert "proxy_occupancy" in expected
    assert callback.health.pop("class_dim") == 3
    for name, value in callback.health.items():
        values = history[f"unseen_{name}"]
        assert len(values) == 3 and values[-1] == value
        assert all(type(one) is float for one in values)


def test_proxies_of_a_function_and_of_several_centres():
    _, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches())
    retrieval.evaluate()
    centers = np.random.default_rng(0).standard_normal((4, 3, 5))
    health = EmbeddingHealth(retrieval, lambda: centers).measure()
    assert health["proxy_occupancy"] == evaluation.proxy_occupancy(
        retrieval.embeddings, centers.reshape(12, 5)
    )
    assert "proxy_occupancy" not in EmbeddingHealth(retrieval).measure()


@pytest.mark.parametrize(
    "layer",
    [
        layers.SampleAwareProxies(4, memory_size=8),
        layers.SampledProxies(4, sample_size=3),
    ],
)
def test_proxies_of_every_layer_that_has_some(layer):
    _, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches())
    retrieval.evaluate()
    health = EmbeddingHealth(retrieval, layer)
    layer.build([(None, 5), (None,)])
    assert health.measure()["proxy_occupancy"] == evaluation.proxy_occupancy(
        retrieval.embeddings, layer.similarity.get_weights()[0]
    )


@pytest.mark.parametrize("proxies", [keras.layers.ReLU(), np.eye(5), 3])
def test_proxies_of_something_else_are_refused(proxies):
    if isinstance(proxies, keras.layers.Layer):
        proxies.build((None, 5))
    retrieval = RetrievalEvaluation(None, batches())
    with pytest.raises(ValueError, match="`proxies` must be a layer with"):
        EmbeddingHealth(retrieval, proxies)


def test_epochs_without_evaluation_have_no_entry():
    trainer, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches(), every=2)
    history = fit(trainer, 5, [retrieval, EmbeddingHealth(retrieval)])
    assert len(history["val_effective_dim"]) == 2


def test_a_loss_that_only_pulls_is_told_once():
    dense = keras.layers.Dense
    found, history = trained(
        lambda: [dense(16, "softplus"), dense(5)], PullTogether(), 40
    )
    assert len(found) == 1 and "collapsed by epoch" in found[0]
    assert history["val_negative_similarity"][0] < 0.95
    assert history["val_negative_similarity"][-1] > 0.99
    assert history["val_effective_dim"][-1] < 1.5


def test_embeddings_on_a_line_are_told():
    dense = keras.layers.Dense
    found, history = trained(
        lambda: [dense(1), dense(5, use_bias=False)], PullTogether(), 2
    )
    assert len(found) == 1
    assert "fill 1.00 dimensions, where separate classes" in found[0]
    assert history["val_effective_dim"][-1] == pytest.approx(1.0)


def test_one_point_is_told():
    def constant():
        return [
            keras.layers.Dense(
                5, kernel_initializer="zeros", bias_initializer="ones"
            )
        ]

    found, _ = trained(constant, PullTogether(), 2, learning_rate=0.0)
    assert len(found) == 1 and "are one point" in found[0]


@pytest.mark.parametrize("epochs", [1, 20])
def test_healthy_training_stays_silent(epochs):
    trainer, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches())
    # A warning would be an error.
    history = fit(trainer, epochs, [retrieval, EmbeddingHealth(retrieval)])
    assert history["val_negative_similarity"][-1] < 0.9
    assert history["val_effective_dim"][-1] > 2


def test_one_bad_epoch_is_no_collapse():
    _, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches())
    callback = EmbeddingHealth(retrieval)
    retrieval.evaluate()
    healthy, labels = retrieval.embeddings, retrieval.labels
    for rows in (np.ones_like(healthy), healthy, np.ones_like(healthy)):
        retrieval.embeddings, retrieval.labels = rows, labels
        callback.on_epoch_end(0, {})
    with pytest.warns(UserWarning, match="collapsed by epoch 2"):
        callback.on_epoch_end(1, {})


def test_errors():
    with pytest.raises(ValueError, match="must be the `RetrievalEvaluation`"):
        EmbeddingHealth(None)
    trainer, embedder = build()
    retrieval = RetrievalEvaluation(embedder, batches())
    with pytest.raises(ValueError, match="must stand after"):
        fit(trainer, 1, [EmbeddingHealth(retrieval), retrieval])
