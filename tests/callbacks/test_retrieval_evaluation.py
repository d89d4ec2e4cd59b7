import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import evaluation
from keras_dml.callbacks import EmbeddingHealth, RetrievalEvaluation
from tests.callbacks.small_trainer import (
    DATA,
    LABELS,
    Record,
    batches,
    build,
    fit,
)


def expected_metrics(embedder, **arguments):
    embeddings = np.asarray(embedder(DATA))
    return evaluation.retrieval_metrics(embeddings, LABELS, **arguments)


class Batches(keras.utils.PyDataset):
    @property
    def num_batches(self):
        return 3

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return DATA[rows], LABELS[rows]


SOURCES = {
    "tf.data": lambda: batches(),
    "partial batch": lambda: batches().unbatch().batch(10),
    "arrays": lambda: (DATA, LABELS),
    "list": lambda: [(DATA[:10], LABELS[:10]), (DATA[10:], LABELS[10:])],
    "PyDataset": lambda: Batches(),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_data_gives_the_same(source):
    _, embedder = build()
    callback = RetrievalEvaluation(embedder, SOURCES[source](), k=(1, 2))
    expected = expected_metrics(embedder, k=(1, 2))
    assert callback.evaluate() == pytest.approx(expected, abs=1e-6)
    assert {"recall@1", "recall@2", "map@r", "r_precision"} <= set(expected)


def test_a_function_may_embed():
    _, embedder = build()
    callback = RetrievalEvaluation(lambda x: 2 * embedder(x), batches())
    assert callback.evaluate() == pytest.approx(
        expected_metrics(embedder, k=1), abs=1e-6
    )


def test_inputs_may_be_a_dict():
    _, embedder = build()
    named = keras.Model({"image": embedder.inputs[0]}, embedder.output)
    data = batches().map(lambda x, y: ({"image": x}, y))
    callback = RetrievalEvaluation(named, data)
    assert callback.evaluate() == pytest.approx(
        expected_metrics(embedder, k=1), abs=1e-6
    )


def test_a_gallery_is_searched_instead_of_the_queries():
    _, embedder = build()
    callback = RetrievalEvaluation(
        embedder, (DATA[:8], LABELS[:8]), references=(DATA[8:], LABELS[8:])
    )
    rows = np.asarray(embedder(DATA))
    expected = evaluation.retrieval_metrics(
        rows[:8], LABELS[:8], rows[8:], LABELS[8:], k=1
    )
    assert callback.evaluate() == pytest.approx(expected, abs=1e-6)


def test_raw_embeddings_may_be_compared():
    function = lambda x: np.asarray(x)[:, :2]  # noqa: E731
    expected = evaluation.retrieval_metrics(
        DATA[:, :2], LABELS, k=1, normalize=False
    )
    callback = RetrievalEvaluation(function, (DATA, LABELS), normalize=False)
    assert callback.evaluate() == pytest.approx(expected)


@pytest.mark.slow
def test_the_logs_hold_the_metrics_of_every_epoch():
    trainer, embedder = build()
    callback = RetrievalEvaluation(embedder, batches(), clustering=True)
    record = Record(lambda _: expected_metrics(embedder, k=1, clustering=True))
    history = fit(trainer, 3, [callback, record])
    for name in ("recall@1", "map@r", "nmi"):
        values = history[f"val_{name}"]
        assert all(type(value) is float for value in values)
        np.testing.assert_allclose(
            values, [one[name] for one in record.values], atol=1e-6
        )
    assert callback.metrics["map@r"] == history["val_map@r"][-1]
    # The embedder shares the layers of the trainer.
    assert history["val_map@r"][0] != history["val_map@r"][-1]


@pytest.mark.slow
def test_stock_callbacks_follow(tmp_path):
    trainer, embedder = build()
    monitor = {"monitor": "val_recall@1", "mode": "max"}
    path = tmp_path / "best.weights.h5"
    stop = keras.callbacks.EarlyStopping(patience=3, **monitor)
    history = fit(
        trainer,
        30,
        [
            RetrievalEvaluation(embedder, batches()),
            keras.callbacks.ModelCheckpoint(
                path, save_best_only=True, save_weights_only=True, **monitor
            ),
            keras.callbacks.ReduceLROnPlateau(patience=1, **monitor),
            stop,
        ],
    )
    recalls = history["val_recall@1"]
    assert stop.stopped_epoch == len(recalls) - 1 < 29
    assert stop.best_epoch == int(np.argmax(recalls))
    assert history["learning_rate"][-1] < history["learning_rate"][0]
    trainer.load_weights(path)
    best = expected_metrics(embedder, k=1)["recall@1"]
    assert best == pytest.approx(max(recalls))


def test_every_so_many_epochs():
    trainer, embedder = build()
    callback = RetrievalEvaluation(embedder, batches(), every=2)
    history = fit(trainer, 5, [callback])
    assert len(history["val_map@r"]) == 2


def test_the_last_epoch_is_evaluated_too():
    """An epoch without an evaluation can never be the best one."""
    trainer, embedder = build()
    callback = RetrievalEvaluation(embedder, batches(), every=2, epochs=5)
    health = EmbeddingHealth(callback)
    history = fit(trainer, 5, [callback, health])
    assert len(history["val_map@r"]) == 3
    assert all(
        len(values) == 3
        for name, values in history.items()
        if name.startswith("val_")
    )


def test_prefix():
    trainer, embedder = build()
    callback = RetrievalEvaluation(embedder, batches(), prefix="unseen_")
    assert "unseen_recall@1" in fit(trainer, 1, [callback])


def test_replicas_do_not_change_the_metrics(strategy):
    with strategy.scope():
        _, embedder = build()
    data = batches().unbatch().batch(9)
    callback = RetrievalEvaluation(embedder, data, k=(1, 2))
    embeddings = np.concatenate([np.asarray(embedder(x)) for x, _ in data])
    expected = evaluation.retrieval_metrics(embeddings, LABELS, k=(1, 2))
    assert callback.evaluate() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "name, values",
    {
        "k": [1, "12", (0,), (1, 2.0)],
        "prefix": [None, 3],
        "normalize": ["no", None],
        "clustering": ["no", 1],
        "seed": [-1, 0.5],
        "batch_size": [0, 2.5, None],
    }.items(),
)
def test_arguments_are_checked(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"`{name}` must be.*{name}="):
            RetrievalEvaluation(None, batches(), **{name: value})


def test_data_without_an_end_are_refused():
    """The end of the first epoch never came."""
    _, embedder = build()
    with pytest.raises(ValueError, match="`references` .* must end"):
        RetrievalEvaluation(embedder, batches(), batches().repeat())


def test_errors():
    with pytest.raises(ValueError, match="every=0"):
        RetrievalEvaluation(None, batches(), every=0)
    with pytest.raises(ValueError, match="`data` of.*only once"):
        RetrievalEvaluation(None, iter(batches()))
    _, embedder = build()
    with pytest.raises(ValueError, match="needs batches of .inputs, labels"):
        RetrievalEvaluation(embedder, batches().map(lambda x, y: x)).evaluate()
    with pytest.raises(ValueError, match="one label for each input.*24, 23"):
        RetrievalEvaluation(embedder, (DATA, LABELS[:-1])).evaluate()
    with pytest.raises(ValueError, match="24 inputs and 23 labels"):
        uneven = [(DATA, LABELS[:-1])]
        RetrievalEvaluation(embedder, uneven).evaluate()
    with pytest.raises(ValueError, match="hold no batch"):
        RetrievalEvaluation(lambda x: x, []).evaluate()
    with pytest.raises(ValueError, match="hold no batch"):
        empty = tf.data.Dataset.from_tensor_slices((DATA, LABELS)).take(0)
        RetrievalEvaluation(embedder, empty).evaluate()
