"""A memory of past embeddings for the losses on pairs."""

from functools import partial

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import own_config
from keras_dml.checks import (
    finite_number,
    integer_at_least,
    positive_integer,
    require,
)
from keras_dml.layers.checks import check_labeled_rows, check_not_half
from keras_dml.layers.class_memory import add_state
from keras_dml.ops.labels import int32_labels
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.similarities import unit_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class CrossBatchMemory(keras.layers.Layer):
    """Compares each batch with the embeddings of earlier batches as well.

    In training the layer computes `weight` times a loss on the pairs of the
    batch and the memory, then writes the rows of the batch over the oldest
    rows of the memory; of a batch larger than the memory, the last rows. It
    appends the value of each row to its embedding as
    one more column, which the loss `WithMemory` adds; outside of training the
    column is zero. Gradients flow to the rows of the batch only.

    The memory is a ring buffer in non-trainable weights: Keras saves and
    restores it with the model. Every replica holds the rows of all replicas.
    The layer stores no rows in the first `warm_up_steps` batches, in which
    embeddings move fast. Empty places form no pair.

    Args:
        loss: A `keras_dml.losses.PairLoss` that can compare the batch with
            rows outside of it, whose `within_batch` is false: not such as
            `Margin`, `NPair`, `Angular` or `VICReg`, not `LiftedStructure` with
            `form="pairs"`, and not with the miner `Given`.
        size: Integer, the number of rows that the memory holds.
        weight: Float, weight of the loss on the memory. Defaults to `1.0`.
        warm_up_steps: Integer, the number of batches before the memory takes
            rows. Defaults to `1000`.
        **kwargs: Base layer arguments. `dtype`, not a half precision, defaults
            to `"float32"`.

    Call arguments:
        inputs: List of the embeddings, a float tensor `(batch, dim)`, and the
            labels, an integer tensor `(batch,)`, from `-2**31` to
            `2**31 - 1`; others raise, or give NaN on an accelerator and under
            XLA. Floats must be integers.
        training: Boolean, whether to use the memory.

    Output shape:
        2D float32 tensor `(batch, dim + 1)`.

    Raises:
        ValueError: If the loss cannot use a memory, a number is out of range,
            `dtype` is a half precision, or labels are no integers or too
            large.

    Example:

    ```python
    memory = CrossBatchMemory(Contrastive(), size=8192, name="memory")
    model = keras.Model(
        {"image": image, "label": label}, memory([embedding, label])
    )
    model.compile("adam", loss=WithMemory(Contrastive()))
    ```

    Reference:
        Wang et al., "Cross-Batch Memory for Embedding Learning", 2020,
        algorithm 1.
    """

    def __init__(self, loss, size, weight=1.0, warm_up_steps=1000, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)
        if isinstance(loss, dict):
            loss = keras.losses.deserialize(loss)
        require(
            isinstance(loss, keras.losses.Loss),
            "loss",
            "a loss or its configuration",
            loss,
            "`keras_dml.losses.get` makes a loss from its name.",
        )
        miner = getattr(loss, "miner", None)
        if getattr(loss, "within_batch", True) or (
            miner is not None and miner.within_batch
        ):
            raise ValueError(
                "`loss` must be a loss on pairs that can compare a batch with "
                f"other rows than its own. Received: loss={loss.name!r}, "
                f"miner={miner!r}. "
                "`Contrastive`, `Triplet` and `MultiSimilarity` can."
            )
        self.loss = loss
        self.size = positive_integer("size", size)
        self.weight = finite_number("weight", weight)
        self.warm_up_steps = integer_at_least(
            "warm_up_steps", warm_up_steps, least=0
        )

    def build(self, input_shape):
        check_labeled_rows(input_shape, self.name)
        add = partial(
            add_state, self, aggregation="only_first_replica", autocast=True
        )
        dim = input_shape[0][-1]
        self.memory = add("memory", (self.size, dim), self.variable_dtype)
        self.labels = add("labels", (self.size,), "int32")
        self.filled = add("filled", (), "int32")
        self.position = add("position", (), "int32")
        self.step = add("step", (), "int32")

    def call(self, inputs, training=False):
        embeddings, labels = inputs
        values = ops.zeros_like(embeddings[:, 0])
        if training:
            owner = f"The labels of the layer {self.name!r}"
            labels, merged = int32_labels(labels, owner, whole_floats=True)
            rows = unit_rows(embeddings) if self.loss.normalize else embeddings
            # Not `add_loss`: the replicas would share the list of its values.
            pairs = self.loss.mined(self._pairs(rows, labels))
            values = self.loss.pair_loss(pairs)
            if merged is not None:
                values = ops.where(merged, float("nan"), values)
            self._enqueue(
                distribute.all_gather(ops.stop_gradient(rows)),
                distribute.all_gather(labels),
            )
        column = self.weight * values[:, None]
        return ops.concatenate([embeddings, column], axis=1)

    def _pairs(self, rows, labels):
        same = ops.equal(labels[:, None], self.labels[None, :])
        valid = ops.less(ops.arange(self.size), self.filled)[None, :]
        return Pairs(
            rows,
            # Copy: on PyTorch the batch overwrites the memory in place, before
            # the backward pass.
            ops.stop_gradient(ops.copy(self.memory)),
            ops.logical_and(same, valid),
            ops.logical_and(ops.logical_not(same), valid),
            distribute.first_row(rows),
            step=ops.convert_to_tensor(self.step),
            labels=labels,
        )

    def _enqueue(self, rows, labels):
        rows, labels = rows[-self.size :], labels[-self.size :]
        memory, old_labels, position = (
            ops.convert_to_tensor(variable)
            for variable in (self.memory, self.labels, self.position)
        )
        number = ops.shape(rows)[0]
        order = ops.arange(number, dtype="int32")
        places = ((position + order) % self.size)[:, None]
        begun = ops.greater_equal(self.step, self.warm_up_steps)
        number = ops.where(begun, ops.cast(number, "int32"), 0)
        new_memory = ops.scatter_update(memory, places, rows)
        new_labels = ops.scatter_update(old_labels, places, labels)
        self.memory.assign(ops.where(begun, new_memory, memory))
        self.labels.assign(ops.where(begun, new_labels, old_labels))
        self.filled.assign(ops.minimum(self.filled + number, self.size))
        self.position.assign((position + number) % self.size)
        self.step.assign_add(1)

    def compute_output_shape(self, input_shape):
        batch, dim = input_shape[0]
        return (batch, dim + 1)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
