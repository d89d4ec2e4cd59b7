"""The base class of re-rankings."""

import abc
from collections.abc import Iterator

from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks


class Reranking(abc.ABC):
    """Orders the references of each query by more than their own scores.

    Subclasses are frozen dataclasses of settings. Choose the settings on
    validation classes, as you choose the hyperparameters of a model.
    """

    def check_metric(self, metric: str) -> None:  # noqa: B027
        """Raises if embeddings that a metric compares cannot be re-ranked.

        Args:
            metric: `"cosine"` or `"euclidean"`.

        Raises:
            UsageError: If the re-ranking needs another metric.
        """

    @abc.abstractmethod
    def positive_rank_blocks(
        self, inputs: RetrievalInputs
    ) -> Iterator[PositiveRanks]:
        """Yields the ranks of the positives, one block of queries at a time.

        Args:
            inputs: `RetrievalInputs`, queries and the gallery they search.
        """
