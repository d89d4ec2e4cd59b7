"""What a search found."""

import dataclasses
from typing import Any

from keras_dml.data.manifest import Manifest
from keras_dml.run.trained_run import EmbeddedImages
from keras_dml.search.thresholds import RunThreshold


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """One image that was found.

    Args:
        id: String, its path within the data set, or its number there.
        label: String, its class.
        score: Float, larger is nearer.
        row: Integer, its row in the gallery.
        accepted: Boolean, whether the score reaches the threshold; `None`
            without a threshold.
    """

    id: str
    label: str
    score: float
    row: int
    accepted: bool | None


@dataclasses.dataclass(frozen=True)
class Answer:
    """What was found for one image, nearest first."""

    path: str
    neighbours: list[Neighbour]

    @property
    def match(self) -> bool | None:
        """Whether the nearest is near enough; `None` without a threshold."""
        return self.neighbours[0].accepted


@dataclasses.dataclass(frozen=True, eq=False)
class SearchResult:
    """The answers for all images, and what they were searched in.

    Args:
        answers: One `Answer` for each image.
        queries: `Manifest` of the images, in the order of the answers.
        gallery: `EmbeddedImages`.
        threshold: `RunThreshold`, or `None` where none could be calibrated.
    """

    answers: list[Answer]
    queries: Manifest
    gallery: EmbeddedImages
    threshold: RunThreshold | None

    @property
    def num_references(self) -> int:
        """How many images were searched."""
        return len(self.gallery.embeddings)

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain values, for JSON."""
        threshold = self.threshold
        return {
            "num_references": self.num_references,
            "threshold": (
                None if threshold is None else threshold.threshold.score
            ),
            "answers": [
                {
                    "image": answer.path,
                    "match": answer.match,
                    "neighbours": [
                        {"id": one.id, "label": one.label, "score": one.score}
                        for one in answer.neighbours
                    ],
                }
                for answer in self.answers
            ],
        }
