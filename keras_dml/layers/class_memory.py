"""The last embeddings of a training, and the mean of each class."""

import keras
from keras import ops

from keras_dml.ops.rows import add_rows, read_rows, write_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class ClassMemory(keras.layers.Layer):
    """Ring of the last rows, with running sums of each class.

    A mean is a sum that what enters is added to and what leaves is subtracted
    from, so that a step costs what a batch does, whatever the size. All state
    is in non-trainable weights. Under `tf.distribute` every replica must
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

        def add(name, shape, dtype="float32", value=0):
            return self.add_weight(
                shape=shape,
                initializer=keras.initializers.Constant(value),
                dtype=dtype,
                trainable=False,
                # Every replica makes the same changes by itself.
                aggregation="none",
                autocast=False,
                name=name,
            )

        self.rows = add("rows", (self.size, dim))
        self.labels = add("labels", (self.size,), "int32", -1)
        self.position = add("position", (), "int32")
        self.sums = add("sums", (self.num_classes, dim))
        self.counts = add("counts", (self.num_classes,))

    def enqueue(self, rows, labels, kept) -> None:
        """Writes rows over the oldest ones.

        Args:
            rows: Float tensor `(batch, dim)`.
            labels: Int32 tensor `(batch,)`.
            kept: Boolean tensor `(batch,)`, which rows are written.
        """
        # The last rows of a batch that is larger than the ring.
        rows, labels, kept = (x[-self.size :] for x in (rows, labels, kept))
        # Kept rows take neighbouring places. The others' places, behind them,
        # keep what they hold.
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
        """Mean row of each given class, and how many rows of it there are.

        Args:
            labels: Int32 tensor `(batch,)`.

        Returns:
            Tensors `(batch, dim)` and `(batch,)`; the mean of a class without
            rows is zero.
        """
        counts = read_rows(self.counts, labels)
        sums = read_rows(self.sums, labels)
        return sums / ops.maximum(counts, 1.0)[:, None], counts

    def get_config(self):
        config = super().get_config()
        config.update({"num_classes": self.num_classes, "size": self.size})
        return config
