"""A layer that trains another on a large batch in the memory of a small one."""

import keras
from keras import ops, tree

from keras_dml.arguments import own_config
from keras_dml.checks import positive_integer


@keras.saving.register_keras_serializable(package="keras_dml")
class InChunks(keras.layers.Layer):
    """Applies a layer in training to a few rows at a time, twice.

    Training a layer on `n` rows keeps what each row needs for its gradient.
    This layer keeps only the inputs and the outputs. It goes over the rows in
    chunks, and for the gradient once more, which computes again what it did
    not keep. The loss sees the outputs of all rows, so the gradients are those
    of the whole batch. A step takes up to half as long again.

    Batch normalization that uses the statistics of the batch uses those of
    the chunk; its moving statistics change once a step, by the mean of the
    chunks. Losses that the layer adds with `add_loss` are not collected, but
    regularizers of its weights are. Outside of training the layer takes all
    rows at once.

    Args:
        layer: A layer or model of one input and one output, with the rows on
            the first axis.
        chunk_size: Integer, the number of rows of a chunk.
        **kwargs: Base layer arguments, such as `name`.

    Input shape:
        The input shape of `layer`. In training the last chunk may be smaller;
        for a number of rows that the graph does not know, it must not be.

    Output shape:
        The output shape of `layer`.

    Raises:
        ValueError: If `chunk_size` is not a positive integer.

    Example:

    ```python
    network = keras.applications.MobileNetV2(include_top=False, pooling="avg")
    image = keras.Input((96, 96, 3))
    embedding = EmbeddingHead(64)(InChunks(network, chunk_size=64)(image))
    model = keras.Model(image, embedding)
    model.compile("adam", loss=keras_dml.losses.MultiSimilarity())
    model.fit(images, labels, batch_size=4096)
    ```

    Reference:
        Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory
        Limited Setup", 2021 (GradCache), section 3.
    """

    def __init__(self, layer, chunk_size, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer
        self.chunk_size = positive_integer("chunk_size", chunk_size)

    def build(self, input_shape):
        if not self.layer.built:
            self.layer.build(input_shape)

    def call(self, inputs, training=None):
        rows = inputs.shape[0]
        if not training or (rows is not None and rows <= self.chunk_size):
            return self.layer(inputs, training=training)
        rest = 0 if rows is None else rows % self.chunk_size
        whole = inputs[: rows - rest] if rest else inputs
        outputs, changes = self._map(whole, self.chunk_size)
        if rest:
            index = rows // self.chunk_size
            last, further = self._map(inputs[rows - rest :], rest, index)
            outputs = ops.concatenate([outputs, last])
            changes = {
                place: ops.concatenate([values, further[place]])
                for place, values in changes.items()
            }
        for place, values in changes.items():
            variable = self.layer.non_trainable_variables[place]
            join = ops.sum if _is_seed(variable) else ops.mean
            change = ops.cast(join(values, axis=0), variable.dtype)
            variable.assign(variable + change)
        return outputs

    def compute_output_shape(self, input_shape):
        return self.layer.compute_output_shape(input_shape)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config.pop("layer"))
        return cls(layer, **config)

    def _embed(self, rows, index):
        """Returns the outputs of a chunk, and how it changes the states.

        The changes are a dict by the place among the non-trainable variables.
        """
        variables = self.layer.non_trainable_variables
        # TensorFlow takes no integers as arguments or results of `apply`, and
        # nothing else from outside of it.
        seeds = [_of_chunk(one, index) for one in variables if _is_seed(one)]
        changed: list[int] = []

        def apply(weights, statistics, rows):
            given = iter(seeds), iter(statistics)
            before = [next(given[not _is_seed(one)]) for one in variables]
            outputs, after = self.layer.stateless_call(
                weights, before, rows, training=True
            )
            changes = {
                place: ops.cast(new - old, "float32")
                for place, (old, new) in enumerate(
                    zip(before, after, strict=True)
                )
                if new is not old
            }
            changed[:] = changes
            return outputs, list(changes.values())

        outputs, changes = keras.remat(apply)(
            [_tensor(one) for one in self.layer.trainable_variables],
            [_tensor(one) for one in variables if not _is_seed(one)],
            rows,
        )
        return outputs, dict(zip(changed, changes, strict=True))

    def _map(self, rows, chunk_size, first=0):
        """Applies the layer to chunks of equal size, one after another.

        Returns the outputs of all rows, and the changes by each chunk.
        """
        chunks = ops.reshape(rows, (-1, chunk_size, *rows.shape[1:]))
        numbers = first + ops.arange(ops.shape(chunks)[0])

        def embed(numbered):
            return self._embed(*numbered)

        if keras.backend.backend() == "tensorflow":
            # Keras would work on ten chunks at once, in the memory of ten.
            import tensorflow as tf

            signature = tree.map_structure(
                lambda x: tf.TensorSpec(x.shape, x.dtype),
                embed((chunks[0], first)),
            )
            outputs, changes = tf.map_fn(
                embed,
                (chunks, numbers),
                fn_output_signature=signature,
                parallel_iterations=1,
            )
        else:
            outputs, changes = ops.map(embed, (chunks, numbers))
        return ops.reshape(outputs, (-1, *outputs.shape[2:])), changes


def _is_seed(variable) -> bool:
    return "int" in variable.dtype


def _of_chunk(seed, index):
    """Returns the state of a generator of seeds that a chunk starts with."""
    value = _tensor(seed)
    return value + ops.cast(ops.stack([0 * index, index]), value.dtype)


def _tensor(variable):
    """Returns the value; TensorFlow converts a variable to itself."""
    return ops.reshape(variable, variable.shape)
