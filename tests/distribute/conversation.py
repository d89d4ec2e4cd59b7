"""What two workers say to each other; run as `python -m`, one per worker.

Each line that is printed is a promise kept; `test_conversation.py` reads them.
"""

import dataclasses
import os

import keras
import numpy as np

from keras_dml import distribute
from keras_dml.data.manifest import Manifest
from keras_dml.distribute.worker_fit import repair_fit
from keras_dml.errors import RunError, UsageError
from keras_dml.run.agreement import check_same_data
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint
from keras_dml.run.data import RunData


def manifest(names):
    return Manifest(
        name="fruit",
        labels=np.arange(len(names)) % 2,
        class_names=["apple", "pear"],
        ids=names,
        images=np.zeros((len(names), 2, 2, 1), np.uint8),
    )


def refused(error, function):
    try:
        function()
    except error as raised:
        return str(raised)
    raise AssertionError("nothing was refused")


def talk(index):
    """The collectives of the host."""
    assert distribute.num_workers() == 2
    assert distribute.worker_index() == index
    assert distribute.is_chief() == (index == 0)
    texts = [b"", b"seven b", b"x" * 100_000]
    for own in texts:
        mine = own if index else own[::-1] + b"!"
        assert distribute.gather_bytes(mine) == [own[::-1] + b"!", own]
    value = {"index": index, "nan": [0.1, None], "text": "é"}
    assert distribute.broadcast(value) == {**value, "index": 0}
    assert [one["index"] for one in distribute.gather(value)] == [0, 1]
    rows = np.float32([[np.nan, -0.0], [np.inf, 1e-45], [1, 2], [3, 4], [5, 6]])
    for count in (5, 2, 1, 0):
        own_rows = rows[:count][distribute.own_rows(count)]
        joined = distribute.gather_rows(own_rows)
        # To the last bit, NaN and -0 included.
        assert joined.tobytes() == rows[:count].tobytes()
    print("collectives")


def disagree(index):
    """Errors of one are errors of all."""

    def fails():
        if index == 1:
            raise UsageError("No such folder.")
        return "fine"

    said = refused(UsageError, lambda: distribute.together(fails))
    assert said.endswith("No such folder."), said
    assert ("On worker 1" in said) == (index == 0)
    assert distribute.together(lambda: index) == index

    same = manifest(["a", "b", "c", "d"])
    other = manifest(["a", "b", "c", "e"])
    data = RunData(same, same, seen=False, partial=False, skipped=0)
    check_same_data(data)
    if index == 1:
        data = dataclasses.replace(data, test=other)
    said = refused(UsageError, lambda: check_same_data(data))
    assert "the checksum of the test images is" in said
    assert "on worker 1 (" in said
    assert "training" not in said
    print("agreement")


def checkpoints(index, path):
    """The chief's file is everyone's, though it alone reads and writes."""
    variable = keras.Variable(np.arange(3.0) + index, name="v")
    save_checkpoint(path, {"model": [variable]}, {"epoch": index})
    checkpoint = load_checkpoint(path)
    checkpoint.restore("model", [variable])
    np.testing.assert_array_equal(variable, [0.0, 1.0, 2.0])
    assert checkpoint.state == {"epoch": 0}
    missing = path.with_name("missing.npz")
    said = refused(RunError, lambda: load_checkpoint(missing))
    assert "not a readable checkpoint" in said
    print("checkpoints")


def train(strategy, index):
    """Keras alone cannot; with the repair the workers end alike."""
    import tensorflow as tf

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    y = x[:, :1] * 3 + 1

    def own_batches(context):
        part = slice(4 * index, 4 * index + 4)
        batches = tf.data.Dataset.from_tensors((x[part], y[part])).repeat()
        return batches.apply(
            tf.data.experimental.assert_cardinality(
                tf.data.INFINITE_CARDINALITY
            )
        )

    def build():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.optimizer.build(model.trainable_variables)
        return model

    alone = build()
    expected = alone.fit(x, y, 8, 3, shuffle=False, verbose=0).history["loss"]
    with strategy.scope():
        model = build()
        batches = strategy.distribute_datasets_from_function(own_batches)
        options = {"epochs": 3, "steps_per_epoch": 1, "verbose": 0}
        try:
            model.fit(batches, **options, shuffle=False)
            print("upstream is fixed")
        except Exception as error:
            print(f"upstream fails: {type(error).__name__}")
        model = build()
        asked = iter([False, index == 1, False])
        stops = repair_fit(model, lambda: next(asked))
        seen = []
        watch = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: seen.append(stops())
        )
        losses = model.fit(
            batches, **options, shuffle=False, callbacks=[watch]
        ).history["loss"]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    # Both know of it, though only one was told.
    assert seen == [False, True, False], seen
    for one, other in zip(
        model.get_weights(), alone.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    print("training")


def main():
    from pathlib import Path

    strategy = distribute.get_strategy("auto", peer_timeout=60)
    assert strategy.num_replicas_in_sync == 2
    assert distribute.get_strategy("multi_worker") is strategy
    index = distribute.worker_index()
    talk(index)
    disagree(index)
    checkpoints(index, Path(os.environ["CHECKPOINT"]))
    train(strategy, index)
    print("done", flush=True)


if __name__ == "__main__":
    main()
