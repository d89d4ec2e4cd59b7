"""Base class of retrieval metrics that gather the rows of an epoch."""

import abc

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import arguments_of
from keras_dml.checks import boolean, optional, positive_integer, require
from keras_dml.metrics.neighbors import Neighbors, merge_neighbors
from keras_dml.ops.labels import int32_labels
from keras_dml.ops.similarities import unit_rows


class RetrievalMetric(keras.metrics.Metric, abc.ABC):
    """Base of metrics of how well the rows of an epoch retrieve each other.

    Every row searches all other rows that came since the last reset, and the
    metric averages over the rows that have another row of their class. So it
    is exact over an epoch, not the mean of batches. The rows stay on the
    device: `capacity` embeddings, and `depth` neighbors of each. A step
    compares its rows with the stored ones only, and all steps of an epoch
    together compare each pair once.

    Rows beyond the capacity are left out. During training the weights change
    between the rows of an epoch, so the value describes the model exactly only
    in `evaluate` and for `validation_data`.

    Under `tf.distribute` every replica stores the rows of all replicas.

    Subclasses implement `by_row`.

    Args:
        depth: Positive integer, the number of neighbors that are kept of each
            row.
        capacity: Positive integer, the number of rows that are kept. Defaults
            to `10_000`.
        normalize: Boolean, whether to compare by cosine; otherwise by the
            Euclidean distance. Defaults to `True`.
        dim: Integer, how many of the first columns of `y_pred` are the
            embedding, for a model with a layer that appends others, such as
            `ClassBoundaries`, `TrainingStep`, `CrossBatchMemory` or
            `Distillation`. Defaults to `None`, all.
        name: String. Defaults to the name of the metric.
        dtype: Dtype of the result. Defaults to `None`, which means
            `keras.config.floatx()`.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row, from `-2**31` to `2**31 - 1`. With others the value is NaN in
            a step that cannot raise: one on an accelerator, or compiled by
            XLA.
        y_pred: Float tensor `(batch, dim)`, the embeddings.
        sample_weight: Float tensor `(batch,)`, the weights of the rows as
            queries. Defaults to `None`.

    Raises:
        ValueError: If an argument is out of range, labels are floats or too
            large, or the shapes do not fit.

    Example:

    >>> class Matches(RetrievalMetric):
    ...     def by_row(self, neighbors):
    ...         return ops.sum(ops.cast(neighbors.match, "float32"), axis=1)
    >>> metric = Matches(depth=2, name="matches")
    >>> embeddings = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> metric.update_state(np.array([4, 4, 7]), embeddings)
    >>> float(metric.result())
    1.0
    """

    def __init__(
        self,
        depth,
        capacity=10_000,
        normalize=True,
        dim=None,
        name=None,
        dtype=None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.depth = positive_integer("depth", depth)
        self.capacity = positive_integer("capacity", capacity)
        require(
            capacity > depth,
            "capacity",
            f"more than {depth}, the number of neighbors of a row",
            capacity,
        )
        self.normalize = boolean("normalize", normalize)
        self.dim = optional(positive_integer, "dim", dim)
        self._built = False
        # Read by Keras' callbacks with `mode="auto"`.
        self._direction = "up"

    @abc.abstractmethod
    def by_row(self, neighbors: Neighbors):
        """Returns the value of every row, a float tensor `(rows,)`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Stores the rows of a batch and compares them with all others."""
        y_pred = ops.convert_to_tensor(y_pred)
        owner = f"`y_true` of the metric {self.name!r}"
        labels, merged = int32_labels(y_true, owner)
        if len(y_pred.shape) != 2:
            raise ValueError(
                f"`y_pred` of the metric {self.name!r} must be embeddings of "
                "shape (batch, dim). Received: "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        if len({labels.shape[0], y_pred.shape[0]} - {None}) > 1:
            raise ValueError(
                f"`y_true` of the metric {self.name!r} must be integer class "
                "labels of shape (batch,). Received: "
                f"y_true.shape={tuple(y_true.shape)}, "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        if self.dim is not None:
            require(
                self.dim <= y_pred.shape[1],
                "dim",
                f"at most {y_pred.shape[1]}, the columns of `y_pred`",
                self.dim,
            )
            y_pred = y_pred[:, : self.dim]
        self._build(y_pred.shape[1])
        rows = ops.cast(y_pred, "float32")
        weights = ops.ones_like(rows[:, 0])
        if sample_weight is not None:
            weights = weights * ops.cast(
                ops.reshape(sample_weight, (-1,)), "float32"
            )
        if merged is not None:
            weights = ops.where(merged, float("nan"), weights)
        self._store(
            distribute.all_gather(unit_rows(rows) if self.normalize else rows),
            distribute.all_gather(labels),
            distribute.all_gather(weights),
        )

    def _build(self, dim):
        if self._built:
            return
        # The last row is for what exceeds the capacity.
        rows = self.capacity + 1
        variables = {
            "embeddings": ((rows, dim), "float32"),
            "labels": ((rows,), "int32"),
            "weights": ((rows,), "float32"),
            "filled": ((), "int32"),
            "similarity": ((rows, self.depth), "float32"),
            "match": ((rows, self.depth), "bool"),
            "positives": ((rows,), "int32"),
        }
        for name, (shape, dtype) in variables.items():
            variable = self.add_variable(
                shape,
                "zeros",
                dtype=dtype,
                aggregation="only_first_replica",
                name=name,
            )
            setattr(self, f"_{name}", variable)
        self._built = True

    def _store(self, rows, labels, weights):
        before = ops.convert_to_tensor(self._filled)
        number = ops.cast(ops.shape(rows)[0], "int32")
        after = ops.minimum(before + number, self.capacity)
        places = ops.minimum(
            before + ops.arange(ops.shape(rows)[0], dtype="int32"),
            self.capacity,
        )
        stored = _written(self._embeddings, places, rows)
        classes = _written(self._labels, places, labels)
        similarity = _similarities(rows, stored, self.normalize)
        same = ops.equal(labels[:, None], classes[None, :])
        columns = ops.arange(self.capacity + 1, dtype="int32")[None, :]
        mine = places[:, None]
        kept = mine < self.capacity
        # Each new row searches all rows, each older row the new ones.
        searched = ops.logical_and(columns < after, columns != mine)
        own = merge_neighbors(self._nothing(rows), similarity, same, searched)
        older = ops.logical_and(columns < before, kept)
        others = merge_neighbors(
            self._neighbors(),
            ops.transpose(similarity),
            ops.transpose(same),
            ops.transpose(older),
        )
        self._embeddings.assign(stored)
        self._labels.assign(classes)
        self._weights.assign(_written(self._weights, places, weights))
        for variable, old, new in zip(
            (self._similarity, self._match, self._positives),
            others,
            own,
            strict=True,
        ):
            variable.assign(_written(old, places, new))
        self._filled.assign(after)

    def _stored_rows(self):
        filled = ops.convert_to_tensor(self._filled)
        return ops.arange(self.capacity + 1, dtype="int32") < filled

    def _nothing(self, rows):
        count = ops.shape(rows)[0]
        return Neighbors(
            ops.full((count, self.depth), -float("inf"), dtype="float32"),
            ops.zeros((count, self.depth), "bool"),
            ops.zeros((count,), "int32"),
        )

    def _neighbors(self):
        there = self._stored_rows()
        # A reset leaves zeros, which would be similarities.
        similarity = ops.where(
            there[:, None],
            ops.convert_to_tensor(self._similarity),
            -float("inf"),
        )
        return Neighbors(
            similarity,
            ops.convert_to_tensor(self._match),
            ops.convert_to_tensor(self._positives),
        )

    def result(self):
        """Returns the mean over the rows that have a positive; else 0."""
        if not self._built:
            return ops.zeros((), self.dtype)
        neighbors = self._neighbors()
        counts = ops.logical_and(self._stored_rows(), neighbors.positives > 0)
        weights = ops.convert_to_tensor(self._weights)
        weights = ops.where(counts, weights, 0.0)
        total = ops.sum(weights * self.by_row(neighbors))
        mean = ops.divide_no_nan(total, ops.sum(weights))
        return ops.cast(mean, self.dtype)

    def get_config(self):
        # A subclass may set the depth itself.
        own = arguments_of(type(self), RetrievalMetric)
        names = own or arguments_of(RetrievalMetric)
        return {
            name: getattr(self, name)
            for name in (*names, "normalize", "dim", "dtype")
        }


def _written(variable, places, values):
    """Returns the tensor of a variable with new rows at some places."""
    tensor = ops.convert_to_tensor(variable)
    return ops.scatter_update(tensor, places[:, None], values)


def _similarities(rows, stored, normalize):
    if normalize:
        return ops.matmul(rows, ops.transpose(stored))
    # A shift changes no distance, but float32 is accurate near the origin.
    origin = ops.where(ops.isfinite(stored[0]), stored[0], 0.0)
    rows, stored = rows - origin, stored - origin
    products = ops.matmul(rows, ops.transpose(stored))
    lengths = ops.sum(ops.square(stored), axis=1)[None, :]
    # The length of the row itself changes no order of its neighbors, but the
    # stored rows see this matrix as well.
    own = ops.sum(ops.square(rows), axis=1)[:, None]
    return 2.0 * products - lengths - own
