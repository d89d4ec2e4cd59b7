"""Measures retrieval metrics during training."""

import keras
import numpy as np
from keras import ops

from keras_dml import evaluation
from keras_dml.checks import (
    boolean,
    integer_at_least,
    optional,
    positive_integer,
    require,
)


class RetrievalEvaluation(keras.callbacks.Callback):
    """Writes retrieval metrics into the logs at the end of an epoch.

    It adds `val_recall@1`, `val_map@r`, ... to the logs as Python floats,
    which Keras' `ModelCheckpoint`, `ReduceLROnPlateau` and `EarlyStopping`
    can monitor with `mode="max"`. It must stand before them in the list of
    callbacks. It adds nothing in an epoch without evaluation (`every`).

    Args:
        embedder: `keras.Model` from inputs to embeddings, which shares its
            layers with the model in training, or a function of a batch of
            inputs.
        data: Batches of `(inputs, labels)`: a `tf.data.Dataset`, a
            `keras.utils.PyDataset` or any iterable that can be read again; or
            a tuple of two arrays. Labels are integers `(batch,)`, or a 0-1
            matrix `(batch, classes)` of several.
        references: The gallery, in the same form. Defaults to `None`: each row
            of `data` is a query among the other rows.
        k: Tuple of integers, the K of Recall@K. Defaults to `(1,)`.
        prefix: String before every name. Defaults to `"val_"`.
        every: Integer, the number of epochs from one evaluation to the next.
            Defaults to `1`.
        normalize: Boolean, whether to compare embeddings by their direction
            only. Defaults to `True`.
        clustering: Boolean, whether to add `nmi`. Defaults to `False`.
        seed: Integer, seed of the clustering. Defaults to `0`.
        batch_size: Integer, for data given as arrays. Defaults to `32`.
        gather: Function that takes an array of the rows of this process and
            returns the rows of all processes, for processes that each embed a
            part of the data. Defaults to `None`: one process embeds all.
        epochs: Integer, the length of the training, whose last epoch is
            evaluated as well, whatever `every` is. Defaults to `None`, unknown.

    Attributes:
        metrics: Dict, the latest results by name without prefix.
        embeddings: Array `(rows, dim)`, the latest embeddings of `data`, or
            `None` before the first evaluation; `EmbeddingHealth` reads them.
        labels: Array `(rows,)` or `(rows, classes)`, the labels of these
            embeddings.

    Raises:
        ValueError: If an argument is out of range, or the data can be read
            only once or have no end.

    Example:

    ```python
    embedder = keras.Model(images, embedding)
    trainer = keras.Model(images, logits)
    callbacks = [
        RetrievalEvaluation(embedder, validation_batches),
        keras.callbacks.ModelCheckpoint(
            "best.keras", monitor="val_recall@1", mode="max",
            save_best_only=True,
        ),
    ]
    trainer.fit(batches, epochs=20, callbacks=callbacks)
    ```
    """

    def __init__(
        self,
        embedder,
        data,
        references=None,
        k=(1,),
        prefix="val_",
        every=1,
        normalize=True,
        clustering=False,
        seed=0,
        batch_size=32,
        gather=None,
        epochs=None,
    ):
        super().__init__()
        for name, value in (("data", data), ("references", references)):
            if hasattr(value, "__next__"):
                raise ValueError(
                    f"`{name}` of `RetrievalEvaluation` is read at the end of "
                    "every epoch, but an iterator or generator can be read "
                    f"only once. Received: {name}={value!r}. Pass a data set "
                    "or a list of batches."
                )
            if _is_endless(value):
                raise ValueError(
                    f"`{name}` of `RetrievalEvaluation` must end, since all of "
                    "it is read at the end of an epoch. Received: "
                    f"{name}={value!r}, which repeats for ever. Leave out "
                    "`repeat()`, or `take` a number of batches."
                )
        self.embedder = embedder
        self.data = data
        self.references = references
        require(isinstance(k, tuple | list), "k", "a tuple of integers", k)
        require(isinstance(prefix, str), "prefix", "a string", prefix)
        self.k = tuple(positive_integer("k", one) for one in k)
        self.prefix = prefix
        self.every = positive_integer("every", every)
        self.normalize = boolean("normalize", normalize)
        self.clustering = boolean("clustering", clustering)
        self.seed = integer_at_least("seed", seed, 0)
        self.batch_size = positive_integer("batch_size", batch_size)
        self.gather = gather
        self.epochs = optional(positive_integer, "epochs", epochs)
        self.metrics: dict[str, float] = {}
        self.embeddings: np.ndarray | None = None
        self.labels: np.ndarray | None = None

    def is_due(self, epoch: int) -> bool:
        """Returns whether an epoch, counted from 0, ends with an evaluation."""
        return (epoch + 1) % self.every == 0 or epoch + 1 == self.epochs

    def on_epoch_end(self, epoch, logs=None):
        if not self.is_due(epoch):
            return
        self.metrics = self.evaluate()
        if logs is not None:
            for name, value in self.metrics.items():
                logs[self.prefix + name] = value

    def evaluate(self) -> dict[str, float]:
        """Measures the current embedder; returns metrics without prefix."""
        queries, labels = self._embed(self.data)
        gallery = (
            () if self.references is None else self._embed(self.references)
        )
        metrics = evaluation.retrieval_metrics(
            queries,
            labels,
            *gallery,
            k=self.k,
            normalize=self.normalize,
            clustering=self.clustering and {"seed": self.seed},
        )
        self.embeddings, self.labels = queries, labels
        return {name: float(value) for name, value in metrics.items()}

    def _embed(self, data):
        """Embeds all rows in one pass; returns embeddings and labels."""
        embeddings, labels = [], []
        for batch in _batches(data, self.batch_size):
            if not isinstance(batch, tuple | list) or len(batch) != 2:
                raise ValueError(
                    "`RetrievalEvaluation` needs batches of (inputs, labels). "
                    f"Received: a batch of type {type(batch).__name__}"
                )
            inputs, classes = batch
            labels.append(_rows(np.asarray(ops.convert_to_numpy(classes))))
            if isinstance(self.embedder, keras.Model):
                if keras.backend.backend() != "tensorflow":
                    # JAX takes no tensor of a `tf.data.Dataset`.
                    inputs = keras.tree.map_structure(
                        ops.convert_to_numpy, inputs
                    )
                rows = self.embedder.predict_on_batch(inputs)
            else:
                rows = np.asarray(ops.convert_to_numpy(self.embedder(inputs)))
            number = len(labels[-1])
            if len(rows) % number if number else len(rows):
                raise ValueError(
                    "The data of `RetrievalEvaluation` must have one label for "
                    f"each input. Received: {len(rows)} inputs and {number} "
                    "labels in a batch"
                )
            # Under a strategy each replica returns the whole batch: keep one.
            embeddings.append(rows[:number])
        if not labels:
            raise ValueError(
                "The data of `RetrievalEvaluation` hold no batch. "
                f"Received: {data!r}"
            )
        found = np.concatenate(embeddings), np.concatenate(labels)
        return found if self.gather is None else tuple(map(self.gather, found))


def _is_endless(data):
    if isinstance(data, keras.utils.PyDataset):
        return data.num_batches is None
    # Only a `tf.data.Dataset` tells; -1 stands for an infinite one.
    count = getattr(data, "cardinality", None)
    return callable(count) and int(count()) == -1


def _rows(labels):
    """Returns labels without axes of size 1, or a matrix of several."""
    several = labels.ndim == 2 and labels.shape[1] > 1
    return labels if several else labels.reshape(-1)


def _batches(data, batch_size):
    if isinstance(data, keras.utils.PyDataset):
        return (data[index] for index in range(data.num_batches))
    if not isinstance(data, tuple):
        return iter(data)
    lengths = [len(one) for one in data]
    if len(set(lengths)) > 1:
        raise ValueError(
            "The data of `RetrievalEvaluation` must have one label for each "
            f"input. Received: arrays of the lengths {lengths}"
        )
    places = range(0, lengths[-1], batch_size)
    return (tuple(one[at : at + batch_size] for one in data) for at in places)
