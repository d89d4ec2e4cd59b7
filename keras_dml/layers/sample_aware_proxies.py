"""Proxies that weight rows by how informative they are."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.arguments import own_config
from keras_dml.checks import (
    boolean,
    finite_number,
    integer_at_least,
    one_of,
    optional,
    positive_integer,
    positive_number,
    require,
)
from keras_dml.layers.checks import (
    check_labeled_rows,
    check_not_half,
    label_vector,
)
from keras_dml.layers.class_memory import ClassMemory, add_state
from keras_dml.layers.proxies import Proxies
from keras_dml.ops import sample_aware
from keras_dml.ops.labels import among_classes
from keras_dml.ops.reductions import over_replicas
from keras_dml.ops.rows import add_rows, entries, read_rows, write_rows
from keras_dml.ops.sample_aware import join_exponents
from keras_dml.ops.similarities import unit_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class SampleAwareProxies(keras.layers.Layer):
    """Computes weighted exponents of rows and proxies, for Proxy-ISA.

    With the cosine `s` of a row and a proxy and the weight `w` of the pair,
    the exponent is `w a (s + d)`, and `w a (d - s)` for a row and its own
    proxy, that of its class.

    A class has seen `n` rows, which count as an effective number `E`. Its
    learned similarity `S` is `hardness` times the mean cosine of its proxy and
    its rows in a memory of the last embeddings. Rows less than the search
    length `eta` below `S` are informative, rows below `S - eta` are outliers:

    - The weight of a row and its own proxy is `1 + sigma` for informative
      rows and `sigma` for others, and 1 before epoch `filter_epoch`.
    - The weight of a row and another proxy is `1 / max(1, E)` below
      `S - eta`, and 1 above.

    The memory takes rows from epoch `memory_epoch` on. From `filter_epoch` on,
    the layer neither stores nor counts outliers. The callback `CountEpochs`
    counts the epochs; without it neither begins. See
    `keras_dml.ops.sample_aware` for the formulas.

    With `weighting="summand"` the exponents are `log w + a (s + d)` and
    `log w + a (d - s)`: the weight stands in front of the exponential.

    All state is in non-trainable weights, saved with the model. Under
    `tf.distribute` every replica stores the rows of all replicas.

    Args:
        num_classes: Integer, the number of classes.
        scale: Positive float, `a`. Defaults to `32.0`.
        margin: Float, `d`. Defaults to `0.1`.
        memory_size: Integer, `T`. Defaults to `55_000`.
        volume: Float above 1, the largest effective number `V`. Defaults to
            `100.0`.
        hardness: Float, `h`. Defaults to `0.15`.
        initial_learned: Float, the learned similarity of a class of which the
            memory holds no row yet. Defaults to `None`, `hardness`: equation
            10 bounds it by `h`. The authors' code has 1, with which nearly all
            negatives lie below `S - eta` until the memory runs.
        sensitivity: Float, `k`. Defaults to `0.9`.
        search_margin: Float, lambda of the search length. Defaults to `0.1`.
        tau: Float; with a larger value `sigma` decays at smaller `E`. Defaults
            to `1.5`.
        decay: The formula of `sigma`: `"sigma"`, `"lower_bound"` (`v`) or
            `"reciprocal"` (`1 / E`, at most 1). Defaults to `"sigma"`.
        positive_weights: Boolean, whether to weight pairs of a row and its own
            proxy; `False` gives them the weight 1. Defaults to `True`.
        negative_weights: Boolean, whether to weight pairs of a row and another
            proxy; `False` gives them the weight 1. Defaults to `True`.
        weighting: What a weight multiplies: the `"exponent"`, as in the paper,
            or the `"summand"`, the exponential; the sums of weights that the
            loss divides by then count every weight as 1. Defaults to
            `"exponent"`.
        filter_outliers: Boolean, whether to keep outliers out of the memory
            and of `n`. Defaults to `True`.
        memory_epoch: Integer, the first epoch of the memory, counted from 0.
            Defaults to `2`.
        filter_epoch: Integer, the first epoch without outliers, counted from
            0. Defaults to `3`.
        initializer: See `Proxies`. Defaults to `"he_fan_out"`.
        **kwargs: Base layer arguments. `dtype`, not a half precision, defaults
            to `"float32"`.

    Input shape:
        Pair of embeddings `(batch, dim)` and integer labels `(batch,)` with
        values from 0 to `num_classes - 1`; others raise, or give NaN on an
        accelerator and under XLA.

    Output shape:
        Float32 tensor `(batch, 1, num_classes + 3)`, which `ProxyISA` and
        `ProxyNCAISA` take: the exponents of the proxies of other classes, with
        `-inf` in the column of the row's own class; the exponent of the own
        proxy; its weight; and the sum over the classes of the mean weight of
        the rows of other classes.

    Raises:
        ValueError: If an argument is out of range, `dtype` is a half
            precision, or a label has no class.

    Example:

    ```python
    head = SampleAwareProxies(num_classes=98, name="proxies")
    model = keras.Model([images, labels], head([embedding, labels]))
    model.compile("adam", loss=ProxyISA())
    model.fit([x, y], y, epochs=20, callbacks=[CountEpochs()])
    ```

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, equations 8 to 17 and algorithm 1. The memory size and the epochs
        come from the authors' code.

        Equation 16 has a weakness. Below the cut `s + d` is mostly negative,
        so a weight under 1 *raises* the exponential: a far negative repels
        more, and the normalizer of equation 13 takes the factor out in front.
        `docs/figures.md` shows it; `weighting="summand"` avoids it.
    """

    def __init__(
        self,
        num_classes,
        scale=32.0,
        margin=0.1,
        memory_size=55_000,
        volume=100.0,
        hardness=0.15,
        initial_learned=None,
        sensitivity=0.9,
        search_margin=0.1,
        tau=1.5,
        decay="sigma",
        positive_weights=True,
        negative_weights=True,
        weighting="exponent",
        filter_outliers=True,
        memory_epoch=2,
        filter_epoch=3,
        initializer="he_fan_out",
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        check_not_half(self.compute_dtype)
        self.num_classes = num_classes
        self.scale = positive_number("scale", scale)
        self.margin = finite_number("margin", margin)
        self.memory_size = positive_integer("memory_size", memory_size)
        self.volume = finite_number("volume", volume)
        require(volume > 1, "volume", "above 1", volume)
        self.hardness = finite_number("hardness", hardness)
        optional(finite_number, "initial_learned", initial_learned)
        self.initial_learned = initial_learned
        self.sensitivity = finite_number("sensitivity", sensitivity)
        self.search_margin = finite_number("search_margin", search_margin)
        self.tau = finite_number("tau", tau)
        self.decay = one_of("decay", decay, sample_aware.DECAYS)
        self.positive_weights = boolean("positive_weights", positive_weights)
        self.negative_weights = boolean("negative_weights", negative_weights)
        self.weighting = one_of("weighting", weighting, sample_aware.WEIGHTINGS)
        self.filter_outliers = boolean("filter_outliers", filter_outliers)
        self.memory_epoch = integer_at_least("memory_epoch", memory_epoch, 0)
        advice = "`memory_epoch` comes first: the memory finds the outliers."
        self.filter_epoch = integer_at_least(
            "filter_epoch", filter_epoch, memory_epoch, advice
        )
        self.similarity = Proxies(
            num_classes,
            initializer=initializer,
            dtype=self.dtype_policy,
            name="similarity",
        )
        self.memory = ClassMemory(
            num_classes, memory_size, dtype="float32", name="memory"
        )

    @property
    def proxies(self):
        """The weight that holds the proxies of all classes."""
        return self.similarity.proxies

    def build(self, input_shape):
        check_labeled_rows(input_shape, self.name)
        self.similarity.build(input_shape[0])
        self.memory.build(input_shape[0])
        classes = (self.num_classes,)
        self.epochs = add_state(self, "epochs", (), "int32")
        self.seen = add_state(self, "seen", classes, self.variable_dtype)
        first = self.initial_learned
        first = self.hardness if first is None else first
        self.learned = add_state(
            self, "learned", classes, self.variable_dtype, first
        )

    def call(self, inputs, training=False):
        embeddings, labels = inputs
        labels = label_vector(labels, self.num_classes, self.name)
        known = among_classes(labels, self.num_classes)
        similarity = self.similarity(
            ops.where(known[:, None], embeddings, float("nan"))
        )
        fixed = ops.stop_gradient(similarity)
        to_own = entries(fixed, labels)
        effective = sample_aware.effective_number(self.seen, self.volume)
        outlier = self.learned - sample_aware.search_length(
            self.learned, effective, self.sensitivity, self.search_margin
        )
        clean = to_own >= ops.take(outlier, labels)
        own_weights = self._own_weights(to_own, labels, outlier, effective)
        factors = self._factors(fixed, outlier, effective)
        if training:
            self._remember(ops.stop_gradient(embeddings), labels, clean)
        if self.weighting == "exponent":
            return self._joined(similarity, labels, factors, own_weights)
        shifts = sample_aware.log_weights(factors / self.scale, own_weights)
        factors = ops.full_like(factors, self.scale)
        own_weights = ops.ones_like(own_weights)
        return shifts + self._joined(similarity, labels, factors, own_weights)

    def _joined(self, similarity, labels, factors, own_weights):
        return join_exponents(
            similarity,
            labels,
            factors,
            self.scale * own_weights,
            self.margin,
            own_weights,
            self._weight_of_others(factors, labels),
        )

    def _own_weights(self, to_own, labels, outlier, effective):
        """Returns the weight of every row and its own proxy."""
        if not self.positive_weights:
            return ops.ones_like(to_own)
        effective = ops.take(effective, labels)
        if self.decay == "reciprocal":
            decay = 1.0 / ops.maximum(effective, 1.0)
        elif self.decay == "lower_bound":
            decay = sample_aware.lower_bound(effective)
        else:
            decay = sample_aware.sigma(effective, self.volume, self.tau)
        learned = ops.take(self.learned, labels)
        outlier = ops.take(outlier, labels)
        weights = sample_aware.positive_weight(to_own, learned, outlier, decay)
        return ops.where(self.epochs >= self.filter_epoch, weights, 1.0)

    def _factors(self, similarity, outlier, effective):
        """Returns `scale` times the weights of rows and other proxies."""
        if not self.negative_weights:
            return ops.full_like(similarity, self.scale)
        return sample_aware.negative_weight(
            similarity, outlier, effective, self.scale
        )

    def _weight_of_others(self, factors, labels):
        """Sums, over the classes, the mean weight of the other rows."""
        own = ops.stack(
            [entries(factors, labels), ops.ones_like(factors[:, 0])], axis=1
        )
        own = ops.segment_sum(own, labels, self.num_classes)
        sums = ops.sum(factors, axis=0) - own[:, 0]
        counts = ops.cast(ops.shape(labels)[0], sums.dtype) - own[:, 1]
        totals = over_replicas(ops.sum, ops.stack([sums, counts]))
        sums, counts = ops.unstack(totals)
        means = sums / ops.maximum(counts, 1.0) / self.scale
        return ops.sum(ops.where(counts > 0, means, ops.zeros_like(means)))

    def _remember(self, embeddings, labels, clean):
        rows = distribute.all_gather(unit_rows(embeddings))
        labels = distribute.all_gather(labels)
        clean = distribute.all_gather(ops.cast(clean, "int32")) > 0
        filters = ops.logical_and(
            self.filter_outliers, self.epochs >= self.filter_epoch
        )
        kept = ops.logical_or(clean, ops.logical_not(filters))
        kept &= among_classes(labels, self.num_classes)
        add_rows(self.seen, labels, ops.cast(kept, self.seen.dtype))
        remembers = self.epochs >= self.memory_epoch
        kept = ops.logical_and(kept, remembers)
        self.memory.enqueue(ops.cast(rows, "float32"), labels, kept)
        means, counts = self.memory.means(labels)
        proxies = unit_rows(ops.take(self.proxies, labels, axis=0))
        means = ops.cast(means, proxies.dtype)
        average = ops.sum(ops.stop_gradient(proxies) * means, axis=1)
        learned = ops.where(
            ops.logical_and(counts > 0, remembers),
            self.hardness * average,
            read_rows(self.learned, labels),
        )
        write_rows(self.learned, labels, learned)

    def assign_class_means(self, embeddings, labels) -> None:
        """Sets the proxies to class means, see `Proxies`."""
        if not self.built:
            self.build([tuple(embeddings.shape), tuple(labels.shape)])
        self.similarity.assign_class_means(embeddings, labels)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], 1, self.num_classes + 3)

    def get_config(self):
        return {**super().get_config(), **own_config(self, self.similarity)}
