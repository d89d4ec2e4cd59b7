"""Base class of the losses that compare embeddings with each other."""

import abc
from functools import partial

from keras import ops

from keras_dml import distribute, miners
from keras_dml.checks import boolean, finite_number, optional, require
from keras_dml.losses.base import Loss
from keras_dml.ops.average import Average, as_average
from keras_dml.ops.distances import metric_name
from keras_dml.ops.draws import training_step
from keras_dml.ops.labels import square_in_a_graph
from keras_dml.ops.pairs import (
    Pairs,
    pair_distances,
    pair_masks,
    pair_similarities,
)
from keras_dml.ops.similarities import unit_rows


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
            row, and `-1` is a class like others; or a boolean or integer
            matrix `(batch, batch)` for rows with several labels or none:
            positive where two rows belong together, 0 where they do not,
            negative where the loss leaves the pair out.
            The loss ignores its diagonal. With several replicas Keras takes
            integers only.
        y_pred: Float tensor `(batch, dim)`, the embeddings.
        sample_weight: Float tensor `(batch,)`, the weights of the rows'
            losses; other rows are still compared with a row of weight zero.
            Defaults to `None`.

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
    # What compares two rows: a name of `keras_dml.ops.distances`, and whether
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
        if isinstance(average, Average | dict):
            # Plain numbers, which a file of Keras holds.
            average = dict(vars(as_average(average)))
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
        self._check_length_of(self)
        self._check_length_of(self.miner)

    def _check_length_of(self, part: "PairLoss | miners.Miner | None") -> None:
        """Raises if the loss or a miner needs rows of length 1."""
        if part is not None and part.of_unit_rows and not self.normalize:
            raise ValueError(
                f"`normalize` of {type(part).__name__} must be True: it is "
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
            metric == usual or self.similarity in (None, metric),
            "similarity",
            f"{metric!r} or None where `{argument}` is given, which is a "
            "similarity as well",
            self.similarity,
            f"`{argument}` is {getattr(self, argument)!r}.",
        )
        self.metric = self.similarity or metric

    def _set_mining_margin(self, mining_margin: float | None) -> None:
        """Takes the miner that `mining_margin` stands for."""
        self.mining_margin = optional(
            finite_number, "mining_margin", mining_margin
        )
        if self.mining_margin is None:
            return
        if self.miner is not None:
            raise ValueError(
                "`miner` must be None where `mining_margin` is given, which is "
                f"a miner as well. Received: miner={self.miner!r} and "
                f"mining_margin={self.mining_margin!r}"
            )
        self._chosen_by = miners.MultiSimilarity(
            self.mining_margin, self.metric
        )

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
        is_vector = len(labels.shape) == 1
        columns = None if is_vector else labels.shape[1]
        if rows and columns not in (None, rows * distribute.num_replicas()):
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be "
                f"{self.labels_in_words}, not one-hot rows. {received}. Take "
                "the `argmax` of one-hot labels; for rows of several labels "
                "pass the matrix of the pairs that share one."
            )
        if not is_vector and None in (rows, columns):
            labels = square_in_a_graph(
                labels,
                f"`y_true` of the loss {self.name!r} must be "
                f"{self.labels_in_words}, not one-hot rows",
                "Take the `argmax` of one-hot labels.",
            )
        embeddings = unit_rows(y_pred) if self.normalize else y_pred
        first_row = distribute.first_row(embeddings)
        references = distribute.all_gather(embeddings)
        classes = distribute.all_gather(labels) if is_vector else labels
        positive, negative = pair_masks(labels, classes, first_row)
        return Pairs(
            embeddings,
            references,
            positive,
            negative,
            first_row,
            step=training_step(),
            labels=ops.cast(labels, "int32") if is_vector else None,
        )
