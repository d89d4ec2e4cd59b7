"""A memory of past embeddings with the mean of each class."""

import keras
from keras import ops

from keras_dml.ops.rows import add_rows, read_rows, write_rows


class ClassMemory(keras.layers.Layer):
    """Keeps the last rows in a ring buffer, and the sum of the rows by class.

    A step adds new rows to the sums and subtracts the rows that they replace,
    so that its cost depends on the size of the batch, not of the memory. All
    state is in non-trainable weights. Under `tf.distribute` every replica must
    `enqueue` the same rows.

    Args:
        num_classes: Integer.
        size: Integer, the number of rows.
        **kwargs: Base layer arguments.
    """

    def __init__(self, num_classes, size, **kwargs):
        super().__init__(**kwargs)
        self.num_classes = num_classes
        self.size = size

    def build(self, input_shape):
        dim = input_shape[-1]
        self.rows = add_state(self, "rows", (self.size, dim))
        self.labels = add_state(self, "labels", (self.size,), "int32", -1)
        self.position = add_state(self, "position", (), "int32")
        self.sums = add_state(self, "sums", (self.num_classes, dim))
        self.counts = add_state(self, "counts", (self.num_classes,))

    def enqueue(self, rows, labels, kept) -> None:
        """Writes rows over the oldest ones.

        Args:
            rows: Float tensor `(batch, dim)`.
            labels: Int32 tensor `(batch,)`.
            kept: Boolean tensor `(batch,)`, which rows to write.
        """
        # Of a batch larger than the ring, take the last rows.
        rows, labels, kept = (x[-self.size :] for x in (rows, labels, kept))
        # Kept rows take neighboring places. The other rows take the places
        # after them, which keep their content.
        entering = ops.cast(kept, "int32")
        number = ops.sum(entering)
        turn = ops.where(
            kept, ops.cumsum(entering), number + ops.cumsum(1 - entering)
        )
        places = ops.mod(self.position + turn - 1, self.size)
        old_rows = read_rows(self.rows, places)
        old_labels = read_rows(self.labels, places)
        leaving = ops.logical_and(kept, old_labels >= 0)
        classes = ops.concatenate([labels, ops.maximum(old_labels, 0)])
        signs = ops.cast(
            ops.concatenate([entering, -ops.cast(leaving, "int32")]), "float32"
        )
        changes = ops.concatenate([rows, old_rows]) * signs[:, None]
        add_rows(self.sums, classes, changes)
        add_rows(self.counts, classes, signs)
        write_rows(self.rows, places, ops.where(kept[:, None], rows, old_rows))
        write_rows(self.labels, places, ops.where(kept, labels, old_labels))
        self.position.assign(ops.mod(self.position + number, self.size))

    def means(self, labels):
        """Returns the mean and the number of the rows of each given class.

        Args:
            labels: Int32 tensor `(batch,)`.

        Returns:
            Tensors `(batch, dim)` and `(batch,)`; the mean of a class without
            rows is zero.
        """
        counts = read_rows(self.counts, labels)
        sums = read_rows(self.sums, labels)
        return sums / ops.maximum(counts, 1.0)[:, None], counts


def add_state(layer, name, shape, dtype="float32", value=0, **options):
    """Adds a non-trainable weight that every replica updates by itself.

    All replicas must make the same updates: nothing synchronizes them.

    Args:
        layer: The layer.
        name: Name of the weight.
        shape: Its shape.
        dtype: Its dtype. Defaults to `"float32"`.
        value: Its initial value. Defaults to `0`.
        **options: Further arguments of `add_weight`, in place of
            `aggregation="none"` and `autocast=False`.
    """
    return layer.add_weight(
        shape=shape,
        initializer=keras.initializers.Constant(value),
        dtype=dtype,
        trainable=False,
        name=name,
        **{"aggregation": "none", "autocast": False, **options},
    )
