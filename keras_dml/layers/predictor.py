"""Predicts the embedding of another view."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import positive_integer


@keras.saving.register_keras_serializable(package="keras_dml")
class Predictor(keras.layers.Layer):
    """Puts a prediction of another view in front of each embedding.

    `h(x) = W_2 relu(norm(W_1 x)) + b`, followed by `x`. The loss `SimSiam`
    takes the result. The normalization is over the numbers of a row; the
    paper's is over the batch, by which a row would depend on others.

    Args:
        hidden: Integer, the length of `W_1 x`. Defaults to `512`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Call arguments:
        inputs: Float tensor `(batch, dim)`, the embeddings.

    Output shape:
        2D float32 tensor `(batch, 2 * dim)`.

    Raises:
        ValueError: If `hidden` is not a positive integer.

    Example:

    >>> Predictor(hidden=8)(np.ones((2, 16))).shape == (2, 32)
    True

    Reference:
        Chen and He, "Exploring Simple Siamese Representation Learning", 2021,
        section 3.
    """

    def __init__(self, hidden=512, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.hidden = positive_integer("hidden", hidden)
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def build(self, input_shape):
        dim, dtype = input_shape[-1], self.dtype_policy
        self._layers_in_turn = [
            keras.layers.Dense(
                self.hidden, use_bias=False, dtype=dtype, name="hidden"
            ),
            keras.layers.LayerNormalization(dtype=dtype, name="norm"),
            keras.layers.ReLU(dtype=dtype),
            keras.layers.Dense(dim, dtype=dtype, name="prediction"),
        ]
        shape = (None, dim)
        for layer in self._layers_in_turn:
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, inputs):
        x = inputs
        for layer in self._layers_in_turn:
            x = layer(x)
        return ops.concatenate([x, inputs], axis=1)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 2 * input_shape[-1])

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
