"""Pools the tokens of a transformer."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import integer_at_least, one_of, positive_integer

MODES = ("class_token", "average", "max", "k_max", "average_plus_max")


def pool_tokens(tokens, mode, prefix_tokens=0, k=1):
    """Pools tokens to one vector for each image.

    Args:
        tokens: Float tensor `(batch, tokens, channels)`.
        mode: One of `"class_token"`, `"average"`, `"max"`, `"k_max"` and
            `"average_plus_max"`, see `TokenPooling`.
        prefix_tokens: Integer, how many tokens come before the patches.
            Defaults to `0`.
        k: Integer, how many activations `"k_max"` averages. Defaults to `1`.

    Returns:
        Tensor `(batch, channels)` of the dtype of `tokens`.

    Example:

    >>> tokens = np.array([[[9.0], [1.0], [3.0]]])
    >>> print(ops.convert_to_numpy(pool_tokens(tokens, "average", 1)))
    [[2.]]
    """
    one_of("mode", mode, MODES)
    if mode == "class_token":
        return tokens[:, 0]
    patches = tokens[:, prefix_tokens:]
    # The maximum needs no sorting and no transposition.
    if mode == "max" or (mode == "k_max" and k == 1):
        return ops.max(patches, axis=1)
    wide = keras.backend.result_type(patches.dtype, "float32")
    if mode == "k_max":
        activations = ops.transpose(patches, (0, 2, 1))
        largest, _ = ops.top_k(activations, k=k, sorted=False)
        pooled = ops.mean(ops.cast(largest, wide), axis=-1)
    else:
        pooled = ops.mean(ops.cast(patches, wide), axis=1)
    if mode == "average_plus_max":
        pooled = pooled + ops.cast(ops.max(patches, axis=1), wide)
    return ops.cast(pooled, tokens.dtype)


@keras.saving.register_keras_serializable(package="keras_dml")
class TokenPooling(keras.layers.Layer):
    """Takes the class token of a transformer, or pools its patches.

    A transformer returns one vector for each patch and, before them, one for
    each prefix token: the class token first, then distillation or register
    tokens. The pooling of patches leaves the prefix tokens out. The layer has
    no weights, does not support masking, and adds in float32 under half
    precision.

    Modes, with the activations `x_{tc}` and `t` over the patches:

    - `"class_token"`: `y_c = x_{0c}`.
    - `"average"`: `y_c = mean of x_{tc}`.
    - `"max"`: `y_c = max of x_{tc}`.
    - `"k_max"`: `y_c = 1/k * sum of the k largest x_{tc}`.
    - `"average_plus_max"`: the sum of average and maximum.

    Args:
        mode: String, one of the modes above.
        prefix_tokens: Integer, how many tokens come before the patches.
            `"class_token"` needs at least one. Defaults to `None`, `1` for
            `"class_token"` and `0` for the other modes.
        k: Integer, how many activations of a channel `"k_max"` averages.
            Defaults to `1`.
        **kwargs: Base layer arguments, such as `name` and `dtype`.

    Input shape:
        3D tensor `(batch, tokens, channels)`.

    Output shape:
        2D tensor `(batch, channels)` of the layer's compute dtype.

    Raises:
        ValueError: If `mode` is unknown, a number is not an integer in its
            range, or there are fewer patches than `k`.

    Example:

    >>> tokens = np.array([9.0, 1.0, 5.0, 3.0]).reshape(1, 4, 1)
    >>> float(TokenPooling("average", prefix_tokens=1)(tokens)[0, 0])
    3.0
    """

    def __init__(self, mode, prefix_tokens=None, k=1, **kwargs):
        super().__init__(**kwargs)
        self.mode = one_of("mode", mode, MODES)
        needed = int(mode == "class_token")
        advice = '`mode="class_token"` needs a token before the patches.'
        self.prefix_tokens = integer_at_least(
            "prefix_tokens",
            needed if prefix_tokens is None else prefix_tokens,
            needed,
            advice if needed else "",
        )
        self.k = positive_integer("k", k)
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def build(self, input_shape):
        if input_shape[1] is None:
            return
        patches = input_shape[1] - self.prefix_tokens
        least = self.k if self.mode == "k_max" else 1
        if patches < least:
            raise ValueError(
                f"There must be at least {least} patches. Received: "
                f"input_shape={tuple(input_shape)}, of which prefix_tokens="
                f"{self.prefix_tokens} are no patches, k={self.k}"
            )

    def call(self, inputs):
        return pool_tokens(inputs, self.mode, self.prefix_tokens, self.k)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[2])

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
