"""The similarity that a match of a run must reach, and how sure that is."""

import dataclasses
from typing import Any, Self

from pydantic import TypeAdapter

from keras_dml.checks import one_of
from keras_dml.evaluation import Threshold
from keras_dml.evaluation.index.spaces import distances
from keras_dml.wording import percent

_SEEN = (
    " These are classes that trained, because too few do to leave some out. "
    "New classes are nearer to each other: more matches are false."
)
_EARLIER = (
    " The network that was calibrated trained without these {}; the one that "
    "trained on them as well has its thresholds, not its errors."
)
CAUTIONS = {
    "classes": "",
    "images": _SEEN,
    "measured run": _EARLIER.format("classes"),
    "images of the measured run": _SEEN + _EARLIER.format("images"),
}
# What images are to a network that trained on them once they had calibrated.
OF_MEASURED_RUN = {
    "classes": "measured run",
    "images": "images of the measured run",
}


@dataclasses.dataclass(frozen=True)
class RunThreshold:
    """Holds a threshold and its errors on the validation classes.

    Args:
        threshold: `Threshold` over the scores of an index.
        wrong_answers: Float, the share of validation images whose nearest
            image of another class reaches the threshold.
        num_images: Integer, the number of validation images.
        num_classes: Integer, the number of validation classes.
        measured_on: What it was calibrated on: `"classes"` that did not train,
            or other `"images"` of classes that did; the network of the
            `"measured run"` on classes, or on `"images of the measured run"`,
            if another one has trained on them since. Defaults to `"classes"`.
    """

    threshold: Threshold
    wrong_answers: float
    num_images: int
    num_classes: int
    measured_on: str = "classes"

    @property
    def distance(self) -> float:
        """The largest distance of a match."""
        return float(distances(self.threshold.score, self.threshold.metric))

    @property
    def meaning(self) -> str:
        """What the threshold decides, and how often that is wrong."""
        pairs = (
            "It is chosen so that of the pairs of validation images of "
            "different classes at most "
            f"{percent(self.threshold.target_fmr, 1)} match. "
            if self.threshold.decision == "pairs"
            else ""
        )
        return (
            "A match may be of the same class: its distance is at most "
            f"{self.distance:.4f}, 0 being the same. {pairs}A photo whose "
            "class is not among the images searched still got a match in "
            f"{percent(self.wrong_answers, 1)} of cases, tried with "
            f"{self.num_images:,} validation images of {self.num_classes:,} "
            "classes; the more images are searched, the more often it does."
            f"{CAUTIONS[self.measured_on]}"
        )

    def facts(self) -> dict[str, Any]:
        """Returns what a client must know of the threshold, as plain values."""
        return {
            "score": self.threshold.score,
            "distance": self.distance,
            "metric": self.threshold.metric,
            "max_false_match_rate": self.threshold.target_fmr,
            "decision": self.threshold.decision,
            "measured_on": self.measured_on,
            "meaning": self.meaning,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Returns the threshold of these plain values.

        Raises:
            ValueError: If they are not those of a threshold.
        """
        found = TypeAdapter(cls).validate_python(values)
        one_of("measured_on", found.measured_on, CAUTIONS)
        return found

    def of_measured_run(self) -> Self:
        """Returns the threshold for a network that trains on its images."""
        measured_on = OF_MEASURED_RUN.get(self.measured_on, self.measured_on)
        return dataclasses.replace(self, measured_on=measured_on)
