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
    chunks, and states that are integers by the sum. Losses that the layer adds
    with `add_loss` are not collected, but regularizers of its weights are.
    Outside of training the layer takes all rows at once.

    Args:
        layer: A layer or model of one input and one output, with the rows on
            the first axis.
        chunk_size: Integer, the number of rows of a chunk.
        **kwargs: Base layer arguments, such as `name`. `layer` computes under
            its own dtype policy.

    Input shape:
        The input shape of `layer`. In training the last chunk may be smaller.

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
        # `layer` alone casts: its inputs, and its weights and states, whose
        # changes would be rounded.
        kwargs.setdefault("dtype", "float32")
        super().__init__(autocast=False, **kwargs)
        self.layer = layer
        self.chunk_size = positive_integer("chunk_size", chunk_size)

    def build(self, input_shape):
        if not self.layer.built:
            # A subclassed model creates its weights in its first call.
            self.layer(keras.KerasTensor(input_shape))

    def call(self, inputs, training=None):
        # A tensor, if the graph does not know the number.
        rows = ops.shape(inputs)[0]
        known = isinstance(rows, int)
        if not training or (known and rows <= self.chunk_size):
            return self.layer(inputs, training=training)
        rest = rows % self.chunk_size
        if not known:
            # TensorFlow cannot map over no chunks of an unknown size.
            rest = (rows - 1) % self.chunk_size + 1
            rest = ops.minimum(rest, rows)
        number = (rows - rest) // self.chunk_size
        whole = inputs[: rows - rest]
        outputs, changes = self._map(whole, number, self.chunk_size)
        if not known or rest:
            last, further = self._map(inputs[rows - rest :], 1, rest, number)
            outputs = ops.concatenate([outputs, last])
            changes = {
                place: ops.concatenate([values, further[place]])
                for place, values in changes.items()
            }
        for place, values in changes.items():
            variable = self.layer.non_trainable_variables[place]
            join = ops.mean if _is_float(variable) else ops.sum
            change = ops.cast(join(values, axis=0), variable.dtype)
            variable.assign(variable + change)
        return outputs

    def compute_output_spec(self, inputs, training=None):
        return self.layer.compute_output_spec(inputs)

    def compute_output_shape(self, input_shape):
        return self.layer.compute_output_shape(input_shape)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})

    def _map(self, rows, number, chunk_size, first=0):
        """Applies the layer to chunks of equal size, one after another.

        Returns the outputs of all rows, and how each chunk changes the states:
        a dict by the place among the non-trainable variables.
        """
        learned = self.layer.trainable_variables
        variables = self.layer.non_trainable_variables
        weights = [_tensor(one) for one in learned]
        states = [_tensor(one) for one in variables]

        def embed(weights, chunk, index):
            before = [
                _of_chunk(variable, state, index)
                for variable, state in zip(variables, states, strict=True)
            ]
            values = zip(
                [*learned, *variables], [*weights, *before], strict=True
            )
            # `stateless_call` would call a layer without `training` with it,
            # and leave its dtype policy out.
            with keras.StatelessScope(values) as scope:
                outputs = self.layer(chunk, training=True)
            after = map(scope.get_current_value, variables)
            return outputs, {
                place: ops.cast(new - old, "float32")
                for place, (old, new) in enumerate(
                    zip(before, after, strict=True)
                )
                if new is not old
            }

        chunks = ops.reshape(rows, (number, chunk_size, *rows.shape[1:]))
        numbers = first + ops.arange(number)
        if keras.backend.backend() == "tensorflow":
            outputs, changes = _map_on_tensorflow(
                embed, weights, chunks, numbers
            )
        else:
            outputs, changes = ops.map(
                lambda one: keras.remat(embed)(weights, *one),
                (chunks, numbers),
            )
        return ops.reshape(outputs, (-1, *outputs.shape[2:])), changes


def _map_on_tensorflow(embed, weights, chunks, numbers):
    """Maps chunks, and again for their gradients, in the memory of one chunk.

    Keras would map ten chunks at once. Its `remat` takes no integers and, in
    the gradient of a loop, no constants of the layers, such as the mean of a
    `Normalization`.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def mapped(chunks, *weights):
        outputs = tf.map_fn(
            lambda one: embed(weights, *one),
            (chunks, numbers),
            fn_output_signature=tree.map_structure(
                lambda x: tf.TensorSpec(x.shape, x.dtype),
                embed(weights, chunks[0], numbers[0]),
            ),
            parallel_iterations=1,
        )

        def gradient(above, *_):
            def turn(place, of_rows, *sums):
                with tf.GradientTape() as tape:
                    given = [tf.identity(one) for one in weights]
                    chunk = chunks[place]
                    tape.watch([chunk, *given])
                    found, _ = embed(given, chunk, numbers[place])
                of_chunk, *more = tape.gradient(
                    found, [chunk, *given], above[place], "zero"
                )
                added = [a + b for a, b in zip(sums, more, strict=True)]
                return place + 1, of_rows.write(place, of_chunk), *added

            count = tf.shape(chunks)[0]
            of_rows = tf.TensorArray(
                chunks.dtype, count, element_shape=chunks.shape[1:]
            )
            _, of_rows, *sums = tf.while_loop(
                lambda place, *_: place < count,
                turn,
                (0, of_rows, *map(tf.zeros_like, weights)),
                parallel_iterations=1,
            )
            return of_rows.stack(), *sums

        return outputs, gradient

    return mapped(chunks, *weights)


def _is_float(variable) -> bool:
    return keras.backend.is_float_dtype(variable.dtype)


def _of_chunk(variable, state, index):
    """Returns the state that a chunk starts with; each has its own seeds."""
    # The name that `keras.random.SeedGenerator` gives its state.
    if variable.name != "seed_generator_state":
        return state
    return state + ops.cast(ops.stack([0 * index, index]), state.dtype)


def _tensor(variable):
    """Returns the value; TensorFlow converts a variable to itself."""
    return ops.reshape(variable, variable.shape)
