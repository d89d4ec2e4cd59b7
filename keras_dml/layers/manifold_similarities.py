"""Compares rows with proxies along the manifold of a batch."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import own_config
from keras_dml.checks import in_interval, positive_integer, positive_number
from keras_dml.initializers import get_proxy_initializer
from keras_dml.layers.checks import check_not_half
from keras_dml.ops.similarities import unit_rows


def manifold_similarities(rows, proxies, alpha=0.8, temperature=0.5):
    """Computes where random walks over rows and proxies end.

    `F = (1 - alpha) (I - alpha D^(-1/2) S D^(-1/2))^(-1)`

    with `S_ij = exp(max(x_i . x_j, 0) / temperature)` for two different of
    the rows and proxies, 0 on the diagonal, and the diagonal matrix `D` of the
    sums of the rows of `S`. A walk goes on with the probability `alpha`, so
    two points are alike if many short ways join them.

    Args:
        rows: Float tensor `(rows, dim)`, of length 1.
        proxies: Float tensor `(proxies, dim)`, of length 1.
        alpha: Float. Defaults to `0.8`.
        temperature: Float. Defaults to `0.5`.

    Returns:
        Tensor `(rows + proxies, rows + proxies)`.

    Example:

    >>> far = np.eye(2, dtype="float32")
    >>> walks = manifold_similarities(far[:1], far[1:], alpha=0.5)
    >>> ops.convert_to_numpy(walks).round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]], dtype=float32)
    """
    points = ops.concatenate([rows, proxies], axis=0)
    identity = ops.eye(ops.shape(points)[0], dtype=points.dtype)
    cosines = ops.matmul(points, ops.transpose(points))
    nothing = ops.cast(float("-inf"), points.dtype)
    # Logarithms: at a low temperature `S` overflows, or all of a row is 0.
    exponents = ops.where(
        identity > 0, nothing, ops.relu(cosines) / temperature
    )
    sums = ops.logsumexp(exponents, axis=1)
    steps = ops.exp(exponents - (sums[:, None] + sums[None, :]) / 2.0)
    return (1.0 - alpha) * ops.inv(identity - alpha * steps)


@keras.saving.register_keras_serializable(package="keras_dml")
class ManifoldSimilarities(keras.layers.Layer):
    """Compares rows with proxies along the manifold of a batch.

    For row `i` and proxy `p` the output holds `F_ip`, the share of random
    walks from `i` that end at `p` times `sqrt(D_i / D_p)`, and the cosine of
    the rows `i` and `p` of `F`: whether walks from both end at the same points.
    `F` is the matrix of `manifold_similarities`, over the rows of all replicas
    and the proxies. The loss `Manifold` takes the result.

    Time grows with the third power of the rows and proxies together.

    Args:
        num_proxies: Integer. A proxy stands for a group of classes. Defaults
            to `50`.
        alpha: Float between 0 and 1, the share of walks that go on at a step.
            Defaults to `0.8`.
        temperature: Positive float; the lower, the more walks prefer near
            points. Defaults to `0.5`.
        initializer: Initializer of the proxies, see `Proxies`. Defaults to
            `"normal"`.
        **kwargs: Base layer arguments. `dtype`, not a half precision, defaults
            to `"float32"`.

    Call arguments:
        inputs: Float tensor `(batch, dim)`, the embeddings.

    Output shape:
        3D float32 tensor `(batch, num_proxies, 2)`.

    Raises:
        ValueError: If `num_proxies` is not a positive integer, `alpha` is not
            between 0 and 1, or `temperature` is not positive.

    Example:

    >>> layer = ManifoldSimilarities(num_proxies=3)
    >>> layer(np.ones((2, 4))).shape == (2, 3, 2)
    True

    Reference:
        Aziere and Todorovic, "Ensemble Deep Manifold Similarity Learning
        Using Hard Proxies", 2019.
    """

    def __init__(
        self,
        num_proxies=50,
        alpha=0.8,
        temperature=0.5,
        initializer="normal",
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)
        self.num_proxies = positive_integer("num_proxies", num_proxies)
        self.alpha = in_interval("alpha", alpha, 0, 1)
        self.temperature = positive_number("temperature", temperature)
        self.initializer = get_proxy_initializer(initializer)
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def build(self, input_shape):
        self.proxies = self.add_weight(
            shape=(self.num_proxies, input_shape[-1]),
            initializer=self.initializer,
            name="proxies",
        )

    def call(self, inputs):
        own = unit_rows(inputs)
        rows = distribute.all_gather(own)
        walks = manifold_similarities(
            rows,
            unit_rows(ops.convert_to_tensor(self.proxies)),
            self.alpha,
            self.temperature,
        )
        of_proxies = walks[ops.shape(rows)[0] :]
        first = distribute.first_row(own)
        of_rows = ops.take(
            walks, first + ops.arange(ops.shape(own)[0], dtype="int32"), axis=0
        )
        ends = of_rows[:, ops.shape(rows)[0] :]
        alike = ops.matmul(
            unit_rows(of_rows), ops.transpose(unit_rows(of_proxies))
        )
        # The slices have lost the static shape.
        return ops.reshape(
            ops.stack([ends, alike], axis=2), (-1, self.num_proxies, 2)
        )

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_proxies, 2)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
