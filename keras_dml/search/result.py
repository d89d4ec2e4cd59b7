"""The answers of a search."""

import dataclasses
import os
from typing import Any

from keras_dml.brief import Brief
from keras_dml.data.manifest import Manifest
from keras_dml.run.run_threshold import RunThreshold
from keras_dml.run.trained_run import EmbeddedImages
from keras_dml.wording import counted, source_title


@dataclasses.dataclass(frozen=True)
class Neighbor:
    """Describes an image that was found.

    Args:
        id: String, its path within the data set, or its number there.
        label: String, its class.
        score: Float; larger is closer.
        distance: Float; smaller is closer: 1 minus the cosine, or the
            Euclidean distance.
        row: Integer, its row in the gallery.
        accepted: Boolean, whether the score reaches the threshold; `None`
            without a threshold.
    """

    id: str
    label: str
    score: float
    distance: float
    row: int
    accepted: bool | None


@dataclasses.dataclass(frozen=True)
class Answer:
    """Lists the neighbors of one image, nearest first.

    Args:
        path: The file of the image.
        neighbors: List of `Neighbor`.
        in_gallery: How often the file is in the gallery, where it does not
            find itself. Defaults to `0`.
    """

    path: str
    neighbors: list[Neighbor]
    in_gallery: int = 0

    @property
    def match(self) -> bool | None:
        """Whether the nearest neighbor reaches the threshold.

        `None` without a threshold, or if there is no neighbor.
        """
        return self.neighbors[0].accepted if self.neighbors else None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SearchResult(Brief):
    """Holds the answers for all images, and the gallery.

    Args:
        answers: One `Answer` for each image, without repetitions.
        queries: `Manifest` of the images, in the order of the answers.
        gallery: `EmbeddedImages`.
        threshold: `RunThreshold`, or `None` if none could be calibrated.
        source: The source whose images were searched. Defaults to `None`, the
            run's test images.
    """

    answers: list[Answer]
    queries: Manifest
    gallery: EmbeddedImages
    threshold: RunThreshold | None
    source: str | None = None

    @property
    def num_references(self) -> int:
        """Number of images that were searched."""
        return len(self.gallery.embeddings)

    def searched(self, answer: Answer | None = None) -> str:
        """Says which images were searched.

        Args:
            answer: For which image. Defaults to `None`, any.
        """
        itself = 0 if answer is None else answer.in_gallery
        count = self.num_references - itself
        other = "other " if itself else ""
        if self.source is None:
            return f"the run's {counted(count, f'{other}test image')}"
        images = counted(count, f"{other}image")
        return f"{images} of {source_title(self.source)}"

    def _brief_title(self) -> str:
        images = counted(len(self.answers), "image")
        return f"SearchResult of {images} in {self.searched()}"

    def _brief_rows(self) -> list[dict[str, Any]]:
        nearest = [next(iter(one.neighbors), None) for one in self.answers]
        return [
            {
                "image": os.path.basename(answer.path),
                "nearest": getattr(first, "id", None),
                "label": getattr(first, "label", None),
                "distance": getattr(first, "distance", None),
                "match": answer.match,
            }
            for answer, first in zip(self.answers, nearest, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the answers as plain values, for JSON."""
        threshold = self.threshold
        return {
            "num_references": self.num_references,
            "threshold": (
                None if threshold is None else threshold.threshold.score
            ),
            "max_distance": None if threshold is None else threshold.distance,
            "answers": [
                {
                    "image": answer.path,
                    "match": answer.match,
                    "neighbors": [
                        {
                            "id": one.id,
                            "label": one.label,
                            "distance": one.distance,
                            "score": one.score,
                            "match": one.accepted,
                        }
                        for one in answer.neighbors
                    ],
                }
                for answer in self.answers
            ],
        }
