"""Base classes of all miners."""

import abc
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_dml.arguments import arguments_of
from keras_dml.ops.pairs import Pairs, over_positives


class Miner(abc.ABC):
    """Base of the miners: chooses which pairs of a batch a loss compares.

    Any loss on pairs takes one, `Contrastive(miner=PairMargin())`, and applies
    it to the rows of the batch, and to the rows of a memory. Under
    `tf.distribute` a miner sees the rows of its replica and the columns of all.

    The constructor of a subclass names its arguments, and stores each in an
    attribute of the same name; `get_config` reads these attributes.

    Call arguments:
        pairs: The `keras_dml.ops.pairs.Pairs`.

    Returns:
        The pairs, fewer of them positive or negative. Their gradients are
        those of the chosen pairs: the choice itself has none.

    Example:

    >>> class NearNegatives(Miner):
    ...     def mine(self, pairs):
    ...         near = pair_similarities(pairs) > 0.5
    ...         return pairs.positive, ops.logical_and(pairs.negative, near)
    >>> from keras_dml.ops.pairs import pair_similarities
    >>> loss = keras_dml.losses.Contrastive(miner=NearNegatives())
    """

    # Whether the choice is drawn: `keras_dml.losses.AtStep` gives the step.
    draws = False
    # Whether the choice is one among rows of length 1.
    of_unit_rows = False
    # Whether the columns must be the rows of the batch: no memory is possible.
    within_batch = False

    @abc.abstractmethod
    def mine(self, pairs: Pairs) -> tuple[Any, Any]:
        """Returns the masks of the chosen positives and negatives."""

    def __call__(self, pairs: Pairs) -> Pairs:
        positive, negative = self.mine(without_gradient(pairs))
        return pairs._replace(positive=positive, negative=negative)

    def __repr__(self) -> str:
        named = (f"{k}={getattr(self, k)!r}" for k in arguments_of(type(self)))
        return f"{type(self).__name__}({', '.join(named)})"

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return keras.saving.serialize_keras_object(
            {name: getattr(self, name) for name in arguments_of(type(self))}
        )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Miner":
        """Makes a miner from the result of `get_config`."""
        return cls(**config)


class TripletMiner(Miner, abc.ABC):
    """Base of the miners that choose triplets of anchor, positive, negative.

    `keras_dml.losses.Triplet` with `mining="all"` compares just these
    triplets. Other losses on pairs get each pair that is part of a triplet,
    once.

    Example:

    >>> class Hard(TripletMiner):
    ...     def chooser(self, pairs):
    ...         distance = pair_distances(pairs)
    ...         def chooses(is_positive):
    ...             own = of_positive(distance, is_positive)
    ...             return distance < own
    ...         return chooses
    >>> from keras_dml.miners.base import of_positive
    >>> from keras_dml.ops.pairs import pair_distances
    >>> loss = keras_dml.losses.Triplet(mining="all", miner=Hard())
    """

    @abc.abstractmethod
    def chooser(self, pairs: Pairs) -> Callable[[Any], Any]:
        """Returns the function that chooses negatives for a positive.

        It takes a boolean tensor `(rows, columns)` that is true where the
        positive of each row is, at most one a row. It returns a boolean tensor
        of the same shape, true where a negative forms a triplet; or a float
        tensor, the weight of each triplet. Pairs that are not negative do not
        count.
        """

    def with_triplets(self, pairs: Pairs) -> Pairs:
        """Returns the pairs, with the function that chooses their triplets."""
        return pairs._replace(triplets=self.chooser(without_gradient(pairs)))

    def mine(self, pairs: Pairs) -> tuple[Any, Any]:
        chooses = self.chooser(pairs)

        def step(state, _, there, itself):
            positive, negative = state
            itself = ops.logical_and(itself, there)
            chosen = ops.cast(chooses(itself), "bool")
            chosen = ops.logical_and(chosen, pairs.negative)
            chosen = ops.logical_and(chosen, there)
            any_chosen = ops.any(chosen, axis=1, keepdims=True)
            return (
                ops.logical_or(positive, ops.logical_and(itself, any_chosen)),
                ops.logical_or(negative, chosen),
            )

        none = ops.zeros_like(pairs.positive)
        return over_positives(none, pairs.positive, step, (none, none))


def of_positive(matrix, is_positive):
    """Returns the entries of the positives, `(rows, 1)`; zero without one.

    Args:
        matrix: Float tensor `(rows, columns)`.
        is_positive: Boolean tensor `(rows, columns)`, at most one true a row.
    """
    return ops.sum(ops.where(is_positive, matrix, 0.0), axis=1, keepdims=True)


def without_gradient(pairs: Pairs) -> Pairs:
    """Returns the pairs of the same rows as constants."""
    rows, columns, similarity = pairs.embeddings, pairs.references, None
    embeddings = ops.stop_gradient(rows)
    # The same object where it is the same: one product of matrices is spared.
    references = embeddings if rows is columns else ops.stop_gradient(columns)
    if pairs.similarity is not None:
        similarity = ops.stop_gradient(pairs.similarity)
    return pairs._replace(
        embeddings=embeddings, references=references, similarity=similarity
    )
