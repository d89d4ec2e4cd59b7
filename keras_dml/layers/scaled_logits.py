"""Logits from similarities."""

import keras

from keras_dml.checks import boolean, positive_number


@keras.saving.register_keras_serializable(package="keras_dml")
class ScaledLogits(keras.layers.Layer):
    """Computes the logits of a softmax: `scale * similarity + bias`.

    `scale` is the inverse temperature `1 / T`. It is a non-trainable weight,
    so that callbacks such as `HeatUp` can change it with `assign`: a compiled
    training step would keep the first value of a Python number. The scale does
    not multiply the bias.

    Args:
        scale: Positive float, the initial scale. Defaults to `1.0`.
        use_bias: Boolean, whether to learn a bias for each class, which starts
            at zero. Defaults to `False`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Input shape:
        2D tensor `(batch, classes)` of similarities.

    Output shape:
        2D float32 tensor `(batch, classes)`.

    Raises:
        ValueError: If `scale` is not a positive number.

    Example:

    >>> float(ScaledLogits(scale=16.0)(np.array([[0.5]]))[0, 0])
    8.0

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018, equation 1.
        The paper multiplies the bias by the scale as well; here it is added
        after, as in the authors' code.
    """

    def __init__(self, scale=1.0, use_bias=False, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.initial_scale = positive_number(
            "scale", scale, "It is the inverse of the temperature."
        )
        self.use_bias = boolean("use_bias", use_bias)
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def build(self, input_shape):
        self.scale = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(self.initial_scale),
            trainable=False,
            name="scale",
        )
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(input_shape[-1],), initializer="zeros", name="bias"
            )

    def call(self, inputs):
        logits = self.scale * inputs
        return logits + self.bias if self.use_bias else logits

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "scale": self.initial_scale,
            "use_bias": self.use_bias,
        }
