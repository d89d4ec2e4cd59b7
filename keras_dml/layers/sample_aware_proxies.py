"""Proxies that weigh rows by what they can still learn from them."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.layers import informativeness
from keras_dml.layers.proxies import Proxies
from keras_dml.layers.unit_rows import unit_rows
from keras_dml.rows import add_rows, read_rows, write_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class SampleAwareProxies(keras.layers.Layer):
    """Cosines to proxies and the weight of each, the head of Proxy-ISA.

    A class `c` has seen `n` rows, which count as an effective number `E`. Its
    learned similarity `S` is `hardness` times the mean cosine of its proxy and
    its rows in a memory of the last embeddings. Rows less than the search
    length `eta` below `S` are informative, those below `S - eta` are outliers:

    - the weight of a row and its own proxy is `1 + sigma` for informative
      rows and `sigma` for others, and 1 until outliers are filtered;
    - the weight of a row and another proxy is `1 / max(1, E)` below
      `S - eta`, and 1 above.

    Outliers enter neither the memory nor `n`. The memory starts with epoch
    `memory_epoch` and the filter with `filter_epoch`; the callback
    `CountEpochs` counts them, and without it neither starts. See
    `informativeness` for the formulas.

    All state is in non-trainable weights, saved with the model: the memory, a
    ring of `memory_size` rows, and sums over its classes that are updated by
    what enters and leaves. Under `tf.distribute` every replica remembers the
    rows of all.

    Args:
        num_classes: Integer, the number of classes.
        memory_size: Integer, `T`. Defaults to `55_000`.
        volume: Float above 1, the largest effective number `V`. Defaults to
            `100.0`.
        hardness: Float, `h`. Defaults to `0.15`.
        sensitivity: Float, `k`. Defaults to `0.9`.
        margin: Float, lambda of the search length. Defaults to `0.1`.
        tau: Float, when `sigma` decays. Defaults to `1.5`.
        decay: What stands for `sigma`: `"sigma"`, `"lower_bound"` (`v`),
            `"reciprocal"` (`1 / E`, at most 1) or `"none"` (all positive
            weights are 1). Defaults to `"sigma"`.
        memory_epoch: Integer, counted from 0. Defaults to `2`.
        filter_epoch: Integer, counted from 0. Defaults to `3`.
        initializer: See `Proxies`. Defaults to `"he_fan_out"`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Input shape:
        Pair of embeddings `(batch, dim)` and integer labels `(batch,)` with
        values from 0 to `num_classes - 1`.

    Output shape:
        Float32 tensor `(batch, 2, num_classes)`: cosines, then weights, which
        have no gradient. `ProxyISA` takes it.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    ```python
    head = SampleAwareProxies(num_classes=98, name="proxies")
    model = keras.Model([images, labels], head([embedding, labels]))
    model.compile("adam", loss=ProxyISA())
    model.fit([x, y], y, epochs=20, callbacks=[CountEpochs()])
    ```

    Reference:
        Li et al., "Informative Sample-Aware Proxy for Deep Metric Learning",
        2022, equations 8 to 17 and algorithm 1. Memory size, initial learned
        similarity and epochs are those of the authors' code.
    """

    def __init__(
        self,
        num_classes,
        memory_size=55_000,
        volume=100.0,
        hardness=0.15,
        sensitivity=0.9,
        margin=0.1,
        tau=1.5,
        decay="sigma",
        memory_epoch=2,
        filter_epoch=3,
        initializer="he_fan_out",
        **kwargs,
    ):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        if not isinstance(memory_size, int) or memory_size < 1:
            raise ValueError(
                "`memory_size` must be a positive integer. "
                f"Received: memory_size={memory_size!r}"
            )
        if not volume > 1:
            raise ValueError(
                f"`volume` must be above 1. Received: volume={volume!r}"
            )
        if decay not in informativeness.DECAYS:
            raise ValueError(
                "`decay` must be one of "
                f"{', '.join(map(repr, informativeness.DECAYS))}. "
                f"Received: decay={decay!r}"
            )
        if filter_epoch < memory_epoch:
            raise ValueError(
                "`filter_epoch` must not be before `memory_epoch`: outliers "
                "are found through the memory. Received: "
                f"memory_epoch={memory_epoch}, filter_epoch={filter_epoch}"
            )
        self.similarity = Proxies(
            num_classes, initializer=initializer, name="similarity"
        )
        self.num_classes = num_classes
        self.memory_size = memory_size
        self.volume = float(volume)
        self.hardness = float(hardness)
        self.sensitivity = float(sensitivity)
        self.margin = float(margin)
        self.tau = float(tau)
        self.decay = decay
        self.memory_epoch = memory_epoch
        self.filter_epoch = filter_epoch

    def build(self, input_shape):
        dim = input_shape[0][-1]
        self.similarity.build(input_shape[0])
        state = {
            # Name: shape, first value, dtype.
            "epochs": ((), 0, "int32"),
            "seen": ((self.num_classes,), 0, "float32"),
            "learned": ((self.num_classes,), 1, "float32"),
            "memory": ((self.memory_size, dim), 0, "float32"),
            "memory_labels": ((self.memory_size,), -1, "int32"),
            "position": ((), 0, "int32"),
            "class_sums": ((self.num_classes, dim), 0, "float32"),
            "class_counts": ((self.num_classes,), 0, "float32"),
        }
        for name, (shape, value, dtype) in state.items():
            weight = self.add_weight(
                shape=shape,
                initializer=keras.initializers.Constant(value),
                dtype=dtype,
                trainable=False,
                # Every replica makes the same changes by itself.
                aggregation="none",
                autocast=False,
                name=name,
            )
            setattr(self, name, weight)

    def call(self, inputs, training=False):
        embeddings, labels = inputs
        labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
        similarity = self.similarity(embeddings)
        fixed = ops.stop_gradient(similarity)
        own = ops.one_hot(labels, self.num_classes, dtype="bool")
        to_own = ops.sum(ops.where(own, fixed, 0.0), axis=1)
        effective = informativeness.effective_number(self.seen, self.volume)
        outlier = self.learned - informativeness.search_length(
            self.learned, effective, self.sensitivity, self.margin
        )
        filtering = self.epochs >= self.filter_epoch
        outlier_of_own = ops.take(outlier, labels)
        positive = informativeness.positive_weight(
            to_own,
            ops.take(self.learned, labels),
            outlier_of_own,
            self._decay(ops.take(effective, labels)),
        )
        if self.decay == "none":
            positive = ops.ones_like(positive)
        positive = ops.where(filtering, positive, ops.ones_like(positive))
        negative = informativeness.negative_weight(fixed, outlier, effective)
        weights = ops.where(own, positive[:, None], negative)
        if training:
            clean = ops.logical_or(
                to_own >= outlier_of_own, ops.logical_not(filtering)
            )
            self._remember(ops.stop_gradient(embeddings), labels, clean)
        return ops.stack([similarity, ops.stop_gradient(weights)], axis=1)

    def _decay(self, effective):
        if self.decay == "reciprocal":
            return 1.0 / ops.maximum(effective, 1.0)
        if self.decay == "lower_bound":
            return informativeness.lower_bound(effective)
        return informativeness.sigma(effective, self.volume, self.tau)

    def _remember(self, embeddings, labels, clean):
        rows = distribute.all_gather(unit_rows(embeddings))
        labels = distribute.all_gather(labels)
        clean = distribute.all_gather(ops.cast(clean, "int32")) > 0
        remembers = self.epochs >= self.memory_epoch
        add_rows(self.seen, labels, ops.cast(clean, "float32"))
        self._enqueue(rows, labels, ops.logical_and(clean, remembers))
        counts = read_rows(self.class_counts, labels)
        means = read_rows(self.class_sums, labels)
        means = means / ops.maximum(counts, 1.0)[:, None]
        proxies = unit_rows(ops.take(self.similarity.proxies, labels, axis=0))
        average = ops.sum(ops.stop_gradient(proxies) * means, axis=1)
        known = ops.logical_and(counts > 0, remembers)
        write_rows(
            self.learned,
            labels,
            ops.where(
                known,
                self.hardness * average,
                read_rows(self.learned, labels),
            ),
        )

    def _enqueue(self, rows, labels, kept):
        """Writes the kept rows to the ring, over the oldest ones."""
        # The last rows of a batch that is larger than the ring.
        rows, labels, kept = (
            x[-self.memory_size :] for x in (rows, labels, kept)
        )
        batch = ops.arange(ops.shape(labels)[0], dtype="int32")
        # Kept rows come first, so that they take neighbouring places; the
        # others' places keep what they hold.
        order = ops.argsort(ops.where(kept, batch, batch + self.memory_size))
        rows, labels, kept = (
            ops.take(x, order, axis=0) for x in (rows, labels, kept)
        )
        places = ops.mod(self.position + batch, self.memory_size)
        old_rows = read_rows(self.memory, places)
        old_labels = read_rows(self.memory_labels, places)
        entering = ops.cast(kept, "float32")
        leaving = ops.cast(ops.logical_and(kept, old_labels >= 0), "float32")
        classes = ops.concatenate([labels, ops.maximum(old_labels, 0)])
        signs = ops.concatenate([entering, -leaving])
        changes = ops.concatenate([rows, old_rows]) * signs[:, None]
        add_rows(self.class_sums, classes, changes)
        add_rows(self.class_counts, classes, signs)
        write_rows(
            self.memory, places, ops.where(kept[:, None], rows, old_rows)
        )
        write_rows(
            self.memory_labels, places, ops.where(kept, labels, old_labels)
        )
        moved = ops.sum(ops.cast(kept, "int32"))
        self.position.assign(ops.mod(self.position + moved, self.memory_size))

    def assign_class_means(self, embeddings, labels) -> None:
        """Sets the proxies to class means, see `Proxies`."""
        self.similarity.assign_class_means(embeddings, labels)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], 2, self.num_classes)

    def get_config(self):
        config = super().get_config()
        for name in (
            "num_classes",
            "memory_size",
            "volume",
            "hardness",
            "sensitivity",
            "margin",
            "tau",
            "decay",
            "memory_epoch",
            "filter_epoch",
        ):
            config[name] = getattr(self, name)
        config["initializer"] = self.similarity.get_config()["initializer"]
        return config
