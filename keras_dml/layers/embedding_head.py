"""The head: from pooled features to an embedding."""

import copy
import math

import keras

from keras_dml.arguments import own_config
from keras_dml.checks import (
    boolean,
    in_interval,
    one_of,
    positive_integer,
    positive_number,
    require,
)
from keras_dml.initializers import UniformFanIn, get_kernel_initializer
from keras_dml.ops.similarities import unit_rows
from keras_dml.ops.whitening import within_class_whitening

NORMALIZATIONS = (None, "l2", "batch_norm")


@keras.saving.register_keras_serializable(package="keras_dml")
class EmbeddingHead(keras.layers.Layer):
    """Projects pooled features to an embedding.

    `f = W^T LayerNorm(x) + b`, then one of:

    - `normalization=None`: `f`.
    - `normalization="l2"`: `f / |f|`.
    - `normalization="batch_norm"`: `BatchNorm(f) / sqrt(dim)`, with a learned
      center and without a learned scale; `b` is left out.

    The layer normalization learns neither a center nor a scale.

    Args:
        dim: Integer, the size of the embedding.
        layer_norm: Boolean, whether the features are layer-normalized before
            the projection. Defaults to `True`.
        normalization: `None`, `"l2"` or `"batch_norm"`. Defaults to `None`.
        use_bias: Boolean, whether the projection has a bias; it never has one
            with `"batch_norm"`. Defaults to `True`.
        kernel_initializer: Initializer of the kernel: one that Keras knows,
            `"uniform_fan_in"`, `"he_fan_out"` or `"scaled_fan_in"`. Defaults
            to `"uniform_fan_in"`, as in PyTorch's linear layer.
        bias_initializer: Initializer of the bias, with the same choices.
            Defaults to `"uniform_fan_in"`.
        batch_norm_momentum: Float in [0, 1), the share of the old moving
            statistics that a step keeps. Defaults to `0.95`.
        batch_norm_epsilon: Float, added to the variance. Defaults to `1e-3`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`:
            normalizing in float16 overflows.

    Input shape:
        2D tensor `(batch, features)`.

    Output shape:
        2D float32 tensor `(batch, dim)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> tuple(EmbeddingHead(dim=64, name="head")(np.ones((2, 1280))).shape)
    (2, 64)

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, section 3.7 (layer
        normalization); Zhang et al., "Heated-Up Softmax Embedding", 2018,
        section 3.3 (batch normalization).
    """

    def __init__(
        self,
        dim,
        layer_norm=True,
        normalization=None,
        use_bias=True,
        kernel_initializer="uniform_fan_in",
        bias_initializer="uniform_fan_in",
        batch_norm_momentum=0.95,
        batch_norm_epsilon=1e-3,
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.dim = positive_integer("dim", dim)
        self.layer_norm = boolean("layer_norm", layer_norm)
        self.normalization = one_of(
            "normalization", normalization, NORMALIZATIONS
        )
        self.use_bias = boolean("use_bias", use_bias)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.bias_initializer = get_kernel_initializer(bias_initializer)
        self.batch_norm_momentum = in_interval(
            "batch_norm_momentum", batch_norm_momentum, 0, 1, "left"
        )
        self.batch_norm_epsilon = positive_number(
            "batch_norm_epsilon", batch_norm_epsilon
        )
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def build(self, input_shape):
        if self.layer_norm:
            self._features = keras.layers.LayerNormalization(
                center=False,
                scale=False,
                epsilon=1e-5,
                dtype=self.dtype_policy,
                name="layer_norm",
            )
            self._features.build(input_shape)
        self._projection = keras.layers.Dense(
            self.dim,
            use_bias=self.use_bias and self.normalization != "batch_norm",
            kernel_initializer=self.kernel_initializer,
            bias_initializer=self._bias_initializer(input_shape[-1]),
            dtype=self.dtype_policy,
            name="projection",
        )
        self._projection.build(input_shape)
        if self.normalization == "batch_norm":
            self._batch_norm = keras.layers.BatchNormalization(
                scale=False,
                momentum=self.batch_norm_momentum,
                epsilon=self.batch_norm_epsilon,
                dtype=self.dtype_policy,
                name="batch_norm",
            )
            self._batch_norm.build((input_shape[0], self.dim))

    def call(self, inputs, training=None):
        features = self._features(inputs) if self.layer_norm else inputs
        embeddings = self._projection(features)
        if self.normalization == "l2":
            return unit_rows(embeddings)
        if self.normalization == "batch_norm":
            normalized = self._batch_norm(embeddings, training=training)
            return normalized / math.sqrt(self.dim)
        return embeddings

    def assign_whitening(self, features, labels, shrinkage=0.6) -> None:
        """Sets the projection to `ops.within_class_whitening` of features.

        The embeddings of a pretrained network then separate classes better
        than its features do, before any training step. They are as long as
        those of a fresh layer. With `normalization="batch_norm"`, the moving
        statistics become those of the projected features.

        Args:
            features: Float array or tensor `(n, features)`, inputs of this
                layer.
            labels: Integer array or tensor `(n,)`.
            shrinkage: Float in (0, 1]; 1 gives a principal component
                analysis. Defaults to `0.6`.

        Raises:
            UsageError: If the shapes do not match, there is no row, a feature
                is not finite, `shrinkage` is out of range, or the layer has
                neither a bias nor batch normalization, which would take the
                mean away.

        Example:

        >>> head = EmbeddingHead(dim=4)
        >>> features = np.random.default_rng(0).normal(size=(100, 8))
        >>> head.assign_whitening(features, np.repeat(np.arange(10), 10))
        """
        require(
            self.use_bias or self.normalization == "batch_norm",
            "use_bias",
            "True to start as a whitening, which subtracts a mean",
            self.use_bias,
        )
        inputs = keras.ops.convert_to_tensor(features, self.compute_dtype)
        if not self.built:
            self.build(inputs.shape)
        if self.layer_norm:
            inputs = self._features(inputs)
        inputs = keras.ops.convert_to_numpy(inputs)
        labels = keras.ops.convert_to_numpy(labels)
        whitening = within_class_whitening(inputs, labels, self.dim, shrinkage)
        # The length of embeddings of `uniform_fan_in`: rates fit both starts.
        scale = math.sqrt(self.dim / 3)
        self._projection.kernel.assign(whitening.kernel * scale)
        if self._projection.use_bias:
            self._projection.bias.assign(whitening.bias * scale)
        if self.normalization == "batch_norm":
            outputs = inputs @ (whitening.kernel * scale)
            self._batch_norm.moving_mean.assign(outputs.mean(axis=0))
            self._batch_norm.moving_variance.assign(outputs.var(axis=0))

    def prefix(self, embeddings, size):
        """Returns what `cut(size)` makes of the features of embeddings.

        Args:
            embeddings: Float tensor `(batch, dim)`, the output of this layer.
            size: Integer, the number of values to keep; more than `dim` means
                all.
        """
        size = min(size, self.dim)
        kept = embeddings[:, :size]
        if self.normalization == "l2":
            return unit_rows(kept)
        if self.normalization == "batch_norm":
            return kept * math.sqrt(self.dim / size)
        return kept

    def cut(self, size) -> "EmbeddingHead":
        """Returns a head that makes the first values of an embedding alone.

        It has the weights of this head, and normalizes what it keeps.

        Args:
            size: Integer, the number of values to keep; more than `dim` means
                all.

        Example:

        >>> head = EmbeddingHead(dim=64)
        >>> embeddings = head(np.ones((2, 1280)))
        >>> tuple(head.cut(16)(np.ones((2, 1280))).shape)
        (2, 16)
        """
        config = {**self.get_config(), "dim": min(size, self.dim)}
        head = type(self).from_config(config)
        head.build((None, self._projection.kernel.shape[0]))
        head.set_weights([one[..., : head.dim] for one in self.get_weights()])
        return head

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.dim)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}

    def _bias_initializer(self, fan_in):
        initializer = self.bias_initializer
        if isinstance(initializer, UniformFanIn) and initializer.fan_in is None:
            # Keep the attribute as given: `get_config` serializes it.
            initializer = copy.copy(initializer)
            initializer.fan_in = fan_in
        return initializer
