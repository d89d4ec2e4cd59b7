"""Base classes of all losses: arguments, input and checks of the input."""

import abc
import warnings
from functools import partial

import keras
from keras import ops

from keras_dml import distribute, miners
from keras_dml.arguments import arguments_of
from keras_dml.checks import boolean, optional, require
from keras_dml.ops.average import Average, as_average
from keras_dml.ops.labels import within_classes
from keras_dml.ops.metrics import metric_name
from keras_dml.ops.pairs import (
    Pairs,
    pair_distances,
    pair_masks,
    pair_similarities,
)
from keras_dml.ops.sampling import training_step
from keras_dml.ops.similarities import unit_rows
from keras_dml.ops.unit_lengths import look_like_embeddings

HALF = ("float16", "bfloat16")


class Loss(keras.losses.Loss):
    """Base of all losses: takes integer labels, never uses half precision.

    The constructor of a subclass names its arguments, stores each in an
    attribute of the same name, and passes the others on. `get_config` reads
    these attributes.

    Args:
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `None`, which means the key of the loss in
            `keras_dml.losses.LOSSES`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`, even under a
            mixed-precision policy.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row.
        y_pred: Float tensor, one row for each label.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If `dtype` is a half precision, or labels are not integers.

    Example:

    ```python
    class Squared(LogitsLoss):
        def __init__(self, factor=1.0, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

        def logits_loss(self, labels, logits):
            return self.factor * softmax_loss(labels, logits) ** 2
    ```
    """

    # The head in front of the loss, one of `keras_dml.models.HEADS`; `None` for
    # a loss that combines others.
    takes: str | None = None
    # Whether `y_pred` has one column for each class, in order, and no others.
    column_per_class = False
    label_dtypes: tuple[str, ...] = ("int", "uint")
    labels_in_words = "integer class labels of shape (batch,)"

    def __init__(self, reduction="sum_over_batch_size", name=None, dtype=None):
        policy = keras.dtype_policies.get(dtype or keras.config.floatx())
        if policy.compute_dtype in HALF:
            raise ValueError(
                "`dtype` of a loss must not be a half precision: labels would "
                "be rounded and exponentials overflow. A mixed-precision model "
                'works with a float32 loss; pass `dtype="float32"` or nothing. '
                f"Received: dtype={policy.compute_dtype}"
            )
        package, _, key = type(self).__module__.rpartition(".")
        super().__init__(
            name=name or (key if package == __package__ else None),
            reduction=reduction,
            dtype=policy.compute_dtype,
        )

    def __call__(self, y_true, y_pred, sample_weight=None):
        # Keras would take each number of a list for a tensor of its own.
        y_true, y_pred = (
            ops.convert_to_tensor(value) if isinstance(value, list) else value
            for value in (y_true, y_pred)
        )
        # Check now: Keras casts labels to float later, which hides their dtype.
        # Do not check under a strategy: there Keras builds the model with the
        # mean of the labels over the replicas, which is a float.
        if distribute.num_replicas() == 1:
            if 0 in y_pred.shape[:1]:
                raise ValueError(
                    f"`y_pred` of the loss {self.name!r} must have at least "
                    f"one row. Received: y_pred.shape={tuple(y_pred.shape)}"
                )
            dtype = ops.convert_to_tensor(y_true).dtype
            dtype = keras.backend.standardize_dtype(dtype)
            if not dtype.startswith(self.label_dtypes):
                raise ValueError(
                    f"`y_true` of the loss {self.name!r} must be "
                    f"{self.labels_in_words}. Received: y_true of dtype "
                    f"{dtype}. Cast the labels in the input pipeline, for "
                    'example with `astype("int32")`.'
                )
        return super().__call__(y_true, y_pred, sample_weight)

    def get_config(self):
        return keras.saving.serialize_keras_object(
            {name: getattr(self, name) for name in arguments_of(type(self))}
        )

    def _flat_labels(self, y_true, y_pred):
        """Returns labels without an axis of size 1, and the shapes as text."""
        received = (
            f"Received: y_true.shape={tuple(y_true.shape)}, "
            f"y_pred.shape={tuple(y_pred.shape)}"
        )
        if not (len(y_true.shape) and len(y_pred.shape)):
            raise ValueError(
                f"`y_true` and `y_pred` of the loss {self.name!r} must have "
                f"a row for each image. {received}"
            )
        if len({y_true.shape[0], y_pred.shape[0]} - {None}) > 1:
            raise ValueError(
                f"`y_true` and `y_pred` of the loss {self.name!r} must have "
                f"the same number of rows. {received}"
            )
        if len(y_true.shape) == 2 and y_true.shape[1] == 1:
            y_true = ops.reshape(y_true, (-1,))
        return y_true, received


def has_column_per_class(loss: keras.losses.Loss) -> bool:
    """Returns whether a loss takes one column per class, as Keras losses do."""
    return getattr(loss, "column_per_class", True)


class LogitsLoss(Loss, abc.ABC):
    """Base of losses on integer labels and one column for each class.

    Subclasses implement `logits_loss`. It returns one entry per row, which
    reduction, sample weights and `tf.distribute` need. The loss computes in
    float32 under every dtype policy.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row, from 0 to `classes - 1`. The loss of other labels is NaN in a
            step that cannot raise: one on an accelerator, or compiled by XLA.
        y_pred: Float tensor `(batch, classes)`, or `(batch, classes, centers)`
            for a loss that takes several centers.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If labels are not integers, are one-hot, or do not fit the
            logits.
        tf.errors.InvalidArgumentError: If a label has no column, in a
            compiled step on a CPU; otherwise this is a `ValueError` as well.

    Example:

    >>> class Misses(LogitsLoss):
    ...     def logits_loss(self, labels, logits):
    ...         return 1 - ops.take_along_axis(logits, labels[:, None], 1)[:, 0]
    >>> float(Misses()(np.array([1]), np.array([[0.2, 0.5]])))
    0.5
    """

    takes: str | None = "logits"
    column_per_class = True
    # Whether `y_pred` may be `(batch, classes, centers)`.
    takes_centers = False

    @abc.abstractmethod
    def logits_loss(self, labels, logits):
        """Returns one loss per row of `logits`; `labels` is int32."""

    def call(self, y_true, y_pred):
        labels, received = self._flat_labels(y_true, y_pred)
        rank = len(y_pred.shape)
        if rank != 2 and not (self.takes_centers and rank == 3):
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be logits of shape "
                f"(batch, classes). {received}. Several centers per class need "
                "a loss that reduces them."
            )
        if len(labels.shape) != 1:
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be integer class "
                f"labels of shape (batch,), not one-hot rows. {received}. Take "
                "the `argmax` of one-hot labels."
            )
        labels = ops.cast(labels, "int32")
        if not self.column_per_class:
            return self.logits_loss(labels, y_pred)
        labels = self._checked_labels(labels, y_pred)
        outside = (labels < 0) | (labels >= ops.shape(y_pred)[1])
        loss = self.logits_loss(labels, y_pred)
        return ops.where(outside, float("nan"), loss)

    def _checked_labels(self, labels, y_pred):
        """Raises for labels without a column, and warns of embeddings."""
        columns = y_pred.shape[1]
        if columns is None:
            return labels
        labels = within_classes(
            labels,
            columns,
            f"`y_true` of the loss {self.name} must lie between 0 and "
            f"{columns - 1}, for `y_pred` has {columns} columns",
            f"The loss takes {self.takes}, one column for each class, not "
            "embeddings: put `keras_dml.layers.Proxies` in front.",
        )
        if self.takes == "similarities" and look_like_embeddings(y_pred):
            warnings.warn(
                f"`y_pred` of the loss {self.name!r} looks like embeddings, as "
                "all rows have length 1. It must be similarities, the output "
                "of `keras_dml.layers.Proxies(num_classes)`.",
                stacklevel=2,
            )
        return labels


class PairLoss(Loss, abc.ABC):
    """Base of losses that compare the embeddings of a batch with each other.

    Subclasses implement `pair_loss`. Under `tf.distribute` every replica
    compares its own rows with the rows of all replicas, so that the result
    does not depend on the number of replicas. The result has one entry per
    row. The loss computes in float32 under every dtype policy.

    The loss normalizes the embeddings, so the model needs no layer for that:
    the trainer gives it the output of the layer "head", which is not
    normalized. Embeddings of length 1 do not change.

    Args:
        normalize: Boolean, whether to divide embeddings by their length.
            Defaults to `True`.
        miner: What chooses the pairs, anything that `keras_dml.miners.get`
            takes. Defaults to `None`, all pairs that the loss uses.
        average: How the terms of the loss become one number, for losses that
            average pairs, triplets or rows: `"all"` for their mean,
            `"non_zero"` for the mean of those that are not zero, or a dict of
            `low`, `high`, `per_anchor` and `class_weights`, see
            `keras_dml.ops.Average`. Defaults to `None`, as the formula says.
        similarity: What compares two rows `x` and `y`, for losses that allow a
            choice: `"cosine"`; `"dot"`, the inner product, for
            `normalize=False`; `"euclidean"` or `"squared_euclidean"`; `"l"`
            and a number `p` of at least 1, such as `"l1"`, for the distance
            `(sum_k |x_k - y_k|^p)^(1/p)`; or `"signal_to_noise"`, the distance
            `var(x - y) / var(x)`. A loss of similarities takes a distance with
            a minus sign; a loss of distances takes `1 - s` for a cosine, `-s`
            for an inner product. Defaults to `None`, that of its formula.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row; or a boolean or integer matrix `(batch, batch)` for rows with
            several labels or none: positive where two rows belong together, 0
            where they do not, negative where the loss leaves the pair out.
            The loss ignores its diagonal. With several replicas Keras takes
            integers only.
        y_pred: Float tensor `(batch, dim)`, the embeddings.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If labels are floats, are one-hot, or do not fit the
            embeddings; if `similarity` is unknown, or the formula of the loss
            holds for its own only.

    Example:

    >>> class Repulsion(PairLoss):
    ...     def pair_loss(self, pairs):
    ...         alike = self.similarities(pairs)
    ...         return ops.max(ops.where(pairs.negative, alike, 0.0), axis=1)
    >>> embeddings = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> float(Repulsion(reduction="sum")(np.array([0, 0, 1]), embeddings))
    2.0
    """

    takes = "embeddings"
    label_dtypes = ("int", "uint", "bool")
    labels_in_words = (
        "integer class labels of shape (batch,) or a matrix of pairs "
        "(batch, batch)"
    )
    # Whether the columns must be the rows of the batch: no memory is possible.
    within_batch = False
    # Whether the loss is one of cosines, which other rows do not have.
    of_unit_rows = False
    # Whether a miner may choose the pairs.
    takes_miner = True
    # Whether it takes the groups of the classes, which no matrix of pairs has.
    takes_groups = False
    # What compares two rows: a name of `keras_dml.ops.metrics`, and whether
    # the formula holds for others.
    metric = "cosine"
    takes_any_metric = True
    # What `average=None` means: `"all"`, `"non_zero"`, or `None` for a loss
    # that leaves its rows to Keras' reduction; and whether it can differ.
    usual_average: str | None = "all"
    takes_any_average = True

    def __init__(
        self,
        normalize=True,
        miner=None,
        average=None,
        similarity=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require(
            self.takes_any_average or average is None,
            "average",
            f"None for {type(self).__name__}, whose formula is no mean of "
            "such terms",
            average,
        )
        if isinstance(average, Average):
            average = dict(vars(average))
        self.average = average
        chosen = self.usual_average if average is None else average
        self._average = None if chosen is None else as_average(chosen)
        self.normalize = boolean("normalize", normalize)
        self.miner = miners.get(miner)
        self.similarity = optional(metric_name, "similarity", similarity)
        self._check_similarity()
        self.metric = similarity or self.metric
        # Subclasses have arguments that stand for a miner.
        self._chosen_by = self.miner
        require(
            self.takes_miner or self.miner is None,
            "miner",
            "None, for the loss itself chooses its pairs",
            self.miner,
        )
        if self.of_unit_rows and not normalize:
            raise ValueError(
                f"`normalize` of {type(self).__name__} must be True: it is "
                "defined for embeddings of length 1. Received: normalize=False"
            )

    @abc.abstractmethod
    def pair_loss(self, pairs: Pairs):
        """Returns one loss per row of `pairs.embeddings`."""

    def similarities(self, pairs: Pairs):
        """Returns the similarities of the pairs `(rows, columns)`."""
        return pair_similarities(pairs, self.metric)

    def mean(self, pairs: Pairs):
        """Returns the function of terms and their mask that averages them."""
        if self._average is None:
            return lambda values, mask=None: values
        return partial(self._average, labels=pairs.labels)

    def distances(self, pairs: Pairs):
        """Returns the distances of the pairs `(rows, columns)`."""
        return pair_distances(pairs, self.metric)

    def call(self, y_true, y_pred):
        return self.pair_loss(self.mined(self.batch_pairs(y_true, y_pred)))

    def mined(self, pairs: Pairs) -> Pairs:
        """Returns the pairs that the miner chooses."""
        if self._chosen_by is None:
            return pairs
        # The miner and the loss compare the same rows.
        pairs = pairs._replace(similarity=pair_similarities(pairs))
        return self._chosen_by(pairs)

    def _check_similarity(self):
        free = self.takes_any_metric and not self.of_unit_rows
        require(
            free or self.similarity is None,
            "similarity",
            f"None for {type(self).__name__}, whose formula holds for "
            f"{self.metric!r} alone",
            self.similarity,
        )
        require(
            self.similarity != "dot" or not self.normalize,
            "normalize",
            "False where `similarity` is 'dot'",
            self.normalize,
            "The inner product of rows of length 1 is the cosine.",
        )

    def _compare_by(self, argument: str, metric: str) -> None:
        """Takes the metric that an argument stands for."""
        usual = type(self).metric
        require(
            self.similarity is None or metric == usual,
            "similarity",
            f"None where `{argument}` is given, which is a similarity as well",
            self.similarity,
            f"`{argument}` is {getattr(self, argument)!r}.",
        )
        self.metric = self.similarity or metric

    def _choose_by(self, argument: str, miner: miners.Miner) -> None:
        """Takes the miner that an argument stands for."""
        if self.miner is not None:
            raise ValueError(
                f"`miner` must be None where `{argument}` is given, which is a "
                f"miner as well. Received: miner={self.miner!r} and "
                f"{argument}={getattr(self, argument)!r}"
            )
        self._chosen_by = miner

    def batch_pairs(self, y_true, y_pred) -> Pairs:
        """Pairs the rows of this replica with the rows of all replicas.

        Args:
            y_true: Integer tensor `(rows,)`, or a matrix `(rows, columns)`.
            y_pred: Float tensor `(rows, dim)`, the embeddings.
        """
        labels, received = self._flat_labels(y_true, y_pred)
        if len(y_pred.shape) != 2:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be embeddings of "
                f"shape (batch, dim). {received}"
            )
        if len(labels.shape) not in (1, 2):
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be "
                f"{self.labels_in_words}. {received}"
            )
        rows = labels.shape[0] or y_pred.shape[0]
        columns = labels.shape[1] if len(labels.shape) == 2 else None
        if rows and columns not in (None, rows * distribute.num_replicas()):
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be "
                f"{self.labels_in_words}, not one-hot rows. {received}. Take "
                "the `argmax` of one-hot labels; for rows of several labels "
                "pass the matrix of the pairs that share one."
            )
        embeddings = unit_rows(y_pred) if self.normalize else y_pred
        first_row = distribute.replica_index() * ops.shape(embeddings)[0]
        references = distribute.all_gather(embeddings)
        classes = distribute.all_gather(labels)
        positive, negative = pair_masks(labels, classes, first_row)
        return Pairs(
            embeddings,
            references,
            positive,
            negative,
            first_row,
            step=training_step(),
            labels=ops.cast(labels, "int32") if columns is None else None,
        )
