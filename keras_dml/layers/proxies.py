"""Proxies: learned vectors that represent the classes."""

import keras
import numpy as np
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import (
    boolean,
    of_shape,
    one_of,
    positive_integer,
    require,
)
from keras_dml.former import renamed
from keras_dml.initializers import get_proxy_initializer
from keras_dml.ops.similarities import (
    METRICS,
    proxy_similarities,
    row_lengths,
)


@keras.saving.register_keras_serializable(package="keras_dml")
class Proxies(keras.layers.Layer):
    """Computes similarities of embeddings `x` to the proxies `p` of classes.

    With `u(v) = v / |v|`:

    - `metric="cosine"`: `u(x) . u(p)`.
    - `metric="dot"`: `x . u(p)`, or `x . p` without `unit_proxies`.
    - `metric="neg_squared_euclidean"`: `-|u(x) - u(p)|**2`, computed as
      `min(2 u(x) . u(p) - 2, 0)`.

    The proxies are an ordinary weight named `proxies`, so that an optimizer
    rule can address them by path. A proxy loss takes the output, scaled by
    `ScaledLogits`, as `y_pred` and the integer class as `y_true`.

    Args:
        num_classes: Integer, the number of classes.
        metric: `"cosine"`, `"dot"` or `"neg_squared_euclidean"`. Defaults to
            `"cosine"`.
        centers: Integer, the number of proxies of a class. Defaults to `1`.
        unit_proxies: Boolean, whether `"dot"` normalizes the proxies; the
            other metrics always do. Defaults to `True`.
        initializer: Initializer of the proxies as a matrix
            `(num_classes * centers, dim)`, see
            `keras_dml.initializers.get_proxy_initializer`. Defaults to
            `"normal_eighth"`, `N(0, 1) / 8`.
        lengths: Boolean, whether to append `|x| |p|` to each product, for
            `LargeMarginSoftmax`; only with `metric="dot"`, one center and
            `unit_proxies=False`. Defaults to `False`.
        regularizer: Regularizer of the proxies, such as `CenterDistance`.
            Defaults to `None`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`:
            normalizing in float16 overflows.

    Input shape:
        2D tensor `(batch, dim)`.

    Output shape:
        2D float32 tensor `(batch, num_classes)`; with more than one center, 3D
        `(batch, num_classes, centers)`; with `lengths`
        `(batch, num_classes, 2)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    ```python
    embedding = EmbeddingHead(dim=64, name="head")(features)
    similarity = Proxies(num_classes=98, name="proxies")(embedding)
    logits = ScaledLogits(scale=16.0, name="logits")(similarity)
    ```

    Reference:
        Movshovitz-Attias et al., "No Fuss Distance Metric Learning using
        Proxies", 2017.
    """

    def __init__(
        self,
        num_classes,
        metric="cosine",
        centers=1,
        unit_proxies=True,
        initializer="normal_eighth",
        regularizer=None,
        lengths=False,
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.num_classes = positive_integer("num_classes", num_classes)
        self.metric = one_of("metric", metric, METRICS)
        self.centers = positive_integer("centers", centers)
        self.unit_proxies = boolean("unit_proxies", unit_proxies)
        if not unit_proxies and metric != "dot":
            raise ValueError(
                f'`unit_proxies=False` needs `metric="dot"`; {metric!r} is '
                "defined on unit proxies. "
                f"Received: metric={metric!r}, unit_proxies={unit_proxies!r}"
            )
        self.lengths = boolean("lengths", lengths)
        plain = metric == "dot" and centers == 1 and not unit_proxies
        require(
            plain or not lengths,
            "lengths",
            "False unless `metric` is 'dot', `centers` 1 and `unit_proxies` "
            "False",
            lengths,
        )
        self.initializer = get_proxy_initializer(initializer)
        self.regularizer = keras.regularizers.get(regularizer)
        self.input_spec = keras.layers.InputSpec(ndim=2)

    def build(self, input_shape):
        dim = input_shape[-1]
        rows = self.num_classes * self.centers

        def initializer(shape, dtype=None):
            values = self.initializer((rows, dim), dtype=dtype)
            return ops.reshape(values, shape)

        self.proxies = self.add_weight(
            shape=(*self.columns(self.num_classes), dim),
            initializer=initializer,
            regularizer=self.regularizer,
            name="proxies",
        )

    def call(self, inputs):
        dim = self.proxies.shape[-1]
        if inputs.shape[-1] != dim:
            raise ValueError(
                f"The proxies of the layer {self.name!r} have {dim} columns, "
                "and its embeddings must have as many. "
                f"Received: inputs.shape={tuple(inputs.shape)}"
            )
        similarities = proxy_similarities(
            inputs, self.proxies, self.metric, self.unit_proxies
        )
        if not self.lengths:
            return similarities
        lengths = row_lengths(inputs)[:, None] * row_lengths(self.proxies)
        return ops.stack([similarities, lengths], axis=2)

    def compute_output_shape(self, input_shape):
        columns = self.columns(self.num_classes)
        return (input_shape[0], *columns, *((2,) if self.lengths else ()))

    def columns(self, num_classes) -> tuple[int, ...]:
        """Returns the shape of a row of similarities to some classes."""
        return (num_classes, self.centers)[: 1 + (self.centers > 1)]

    def get_config(self):
        return {**super().get_config(), **own_config(self)}

    @classmethod
    def from_config(cls, config):
        return super().from_config(renamed(config))

    def assign_class_means(self, embeddings, labels) -> None:
        """Sets every proxy to the direction of its class's mean embedding.

        `p_c = m / |m|` with the mean `m` of the embeddings of class `c`. With
        several centers, the rows of a class go to the centers in turn, so that
        the centers differ. A proxy without a row keeps its value.

        Args:
            embeddings: Float array or tensor `(n, dim)`.
            labels: Integer array or tensor `(n,)` with values from 0 to
                `num_classes - 1`.

        Raises:
            ValueError: If the shapes do not match or a label is out of range.

        Reference:
            Zhang et al., "Heated-Up Softmax Embedding", 2018 (in the authors'
            code, for Stanford Online Products).
        """
        embeddings = np.asarray(ops.convert_to_numpy(embeddings), np.float64)
        labels = np.asarray(ops.convert_to_numpy(labels))
        self._check_rows(embeddings, labels)
        labels = labels.astype(np.int64)
        if not self.built:
            self.build(embeddings.shape)
        groups = labels * self.centers + _turn(labels) % self.centers
        sums = np.zeros((self.num_classes * self.centers, embeddings.shape[1]))
        np.add.at(sums, groups, embeddings)
        # A sum has the direction of its mean.
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        means = sums / np.maximum(lengths, 1e-12)
        proxies = ops.convert_to_numpy(self.proxies)
        self.proxies.assign(
            np.where(
                (lengths > 1e-12).reshape((*proxies.shape[:-1], 1)),
                means.reshape(proxies.shape),
                proxies,
            ).astype(proxies.dtype)
        )

    def _check_rows(self, embeddings, labels):
        of_shape("embeddings", embeddings, "n", "dim")
        of_shape("labels", labels, len(embeddings))
        last = self.num_classes - 1
        if not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(
                f"`labels` must be integers between 0 and {last}. Received: "
                f"labels of the dtype {labels.dtype}"
            )
        if np.any((labels < 0) | (labels > last)):
            raise ValueError(
                f"`labels` must be integers between 0 and {last}. Received: "
                f"labels from {labels.min()} to {labels.max()}"
            )


def _turn(labels: np.ndarray) -> np.ndarray:
    """Returns, for each row, the number of earlier rows with its label."""
    order = np.argsort(labels, kind="stable")
    _, starts, counts = np.unique(
        labels[order], return_index=True, return_counts=True
    )
    turns = np.empty(len(labels), np.int64)
    turns[order] = np.arange(len(labels)) - np.repeat(starts, counts)
    return turns
