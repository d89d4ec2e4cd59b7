"""What every way of re-ranking can do."""

import abc
from collections.abc import Iterator

from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks


class Reranking(abc.ABC):
    """Orders the references of each query by more than their own scores.

    Subclasses are frozen dataclasses of settings, chosen on validation
    classes: a re-ranking has parameters as a model has.
    """

    @abc.abstractmethod
    def positive_rank_blocks(
        self, inputs: RetrievalInputs
    ) -> Iterator[PositiveRanks]:
        """Yields ranks of the positives by blocks of queries.

        Args:
            inputs: `RetrievalInputs`, queries and the gallery they search.
        """
