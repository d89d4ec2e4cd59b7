"""Embeddings of the higher moments of local features."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import boolean, integer_at_least, positive_integer
from keras_dml.layers.checks import check_list_of_inputs


def high_order_moments(features, projections):
    """Estimates the moments of local features from the second order on.

    `m_k = mean_p (W_1 x_p) * (W_2 x_p) * ... * (W_k x_p)`, each product the one
    before times one more projection. If the entries of `W` are independent, of
    mean 0 and variance 1, then the inner product of the moments of two images
    is in expectation the number of projections times `mean_pq (x_p . y_q)**k`.

    Args:
        features: Float tensor `(batch, positions, channels)`, `x`.
        projections: Float tensor `(orders, channels, projections)`, `W`.

    Returns:
        List of `orders - 1` tensors `(batch, projections)`.

    Example:

    >>> features, ones = np.array([[[1.0], [3.0]]]), np.ones((3, 1, 1))
    >>> [float(one[0, 0]) for one in high_order_moments(features, ones)]
    [5.0, 14.0]
    """
    product, moments = ops.matmul(features, projections[0]), []
    for order in range(1, projections.shape[0]):
        product = product * ops.matmul(features, projections[order])
        moments.append(ops.mean(product, axis=1))
    return moments


@keras.saving.register_keras_serializable(package="keras_dml")
class HighOrderMoments(keras.layers.Layer):
    """HORDE: appends an embedding of each moment of the feature map.

    `z_k = P_k mean_p (W_1 x_p) * ... * (W_k x_p)` for the orders `k` from 2 on,
    with the features `x_p` at the positions `p` of a map. `W_k` has random
    entries of 1 and -1, and `P_k` is trained. The loss `OnMoments` adds a loss
    on each: images of a class shall agree in how their local features are
    distributed, not in the mean alone. Nothing of it is needed after training.

    Args:
        orders: Integer, the highest order, at least 2. Defaults to `5`.
        projections: Integer, the number of rows of each `W_k`. Defaults to
            `8192`.
        train_projections: Boolean, whether `W_k` is trained too; each then
            begins as the kernel of a `Dense` layer. Defaults to `False`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Call arguments:
        inputs: List of the embeddings, a float tensor `(batch, dim)`, and the
            features before pooling: a map `(batch, height, width, channels)`,
            or tokens `(batch, tokens, channels)`.

    Output shape:
        2D float32 tensor `(batch, orders * dim)`: the embedding, then those
        of the moments.

    Raises:
        ValueError: If a number is out of range, or the features are pooled.

    Example:

    ```python
    maps = backbone(image)
    embedding = EmbeddingHead(64)(GlobalAveragePooling2D()(maps))
    outputs = HighOrderMoments(orders=3, name="moments")([embedding, maps])
    trainer = keras.Model(image, outputs)
    trainer.compile("adam", OnMoments(Contrastive(), orders=3))
    embedder = keras.Model(image, embedding)
    ```

    Reference:
        Jacob et al., "Metric Learning with HORDE: High-Order Regularizer for
        Deep Embeddings", 2019, section 3, with the cascade of its authors'
        code; Kar and Karnick, "Random Feature Maps for Dot Product Kernels",
        2012 (the signs).
    """

    def __init__(
        self, orders=5, projections=8192, train_projections=False, **kwargs
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.orders = integer_at_least("orders", orders, least=2)
        self.projections = positive_integer("projections", projections)
        self.train_projections = boolean("train_projections", train_projections)

    def build(self, input_shape):
        check_list_of_inputs(input_shape, self.name, "embeddings", "features")
        (*_, dim), features = input_shape
        if len(features) not in (3, 4):
            raise ValueError(
                f"The layer {self.name!r} needs features before pooling, of "
                "shape (batch, height, width, channels) or (batch, tokens, "
                f"channels). Received: features of shape {tuple(features)}"
            )
        self.random = self.add_weight(
            shape=(self.orders, features[-1], self.projections),
            initializer=_kernels if self.train_projections else _signs,
            trainable=self.train_projections,
            name="random",
        )
        self.kernels = [
            self.add_weight(
                shape=(self.projections, dim),
                initializer="glorot_uniform",
                name=f"order_{order}",
            )
            for order in range(2, self.orders + 1)
        ]

    def call(self, inputs):
        embeddings, features = inputs
        channels = features.shape[-1]
        features = ops.reshape(features, (ops.shape(features)[0], -1, channels))
        moments = high_order_moments(features, self.random)
        of_moments = map(ops.matmul, moments, self.kernels)
        return ops.concatenate([embeddings, *of_moments], axis=1)

    def compute_output_shape(self, input_shape):
        batch, dim = input_shape[0]
        return (batch, self.orders * dim)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}


def _kernels(shape, dtype=None):
    # Keras would take the orders for the size of a convolution.
    return ops.stack(
        [
            keras.initializers.GlorotUniform()(shape[1:], dtype=dtype)
            for _ in range(shape[0])
        ]
    )


def _signs(shape, dtype=None):
    draws = keras.initializers.RandomUniform(-1.0, 1.0)(shape, dtype=dtype)
    return ops.cast(ops.where(draws < 0, -1.0, 1.0), draws.dtype)
