"""What came of a claim."""

import dataclasses
import math

from keras_dml.comparison.records import Experiment
from keras_dml.comparison.summary import Summary
from keras_dml.evaluation import Difference
from keras_dml.wording import metric_title

CONFIRMED, CONTRADICTED = "confirmed", "contradicted"
OPEN, NOT_MEASURED = "open", "not measured"


@dataclasses.dataclass(frozen=True)
class FindingResult:
    """What came of a claim in one experiment.

    Args:
        claim: The claim.
        experiment: `Experiment`, or `None` where nothing was run.
        metric: Name of the metric.
        better: Tuple of arms.
        than: Tuple of arms.
        difference: Float, how far the first exceed the second; NaN where it
            was not measured. With pairs, that of the pair least in favour.
        seeds: `Summary` of the differences under the same seeds, or `None`
            with one repetition.
        queries: `Difference` over test classes drawn anew, or `None` without
            values of single queries.
        verdict: `"confirmed"` where both intervals lie above zero,
            `"contradicted"` where both lie below, `"not measured"` where arms
            are missing, else `"open"`. Where one interval is `None`, the other
            decides alone, and `notes` says so.
        notes: Tuple of remarks.
        pairs: Tuple of `FindingResult`, one a pair of arms, where each must
            hold. Defaults to `()`.
    """

    claim: str
    experiment: Experiment | None
    metric: str
    better: tuple[str, ...]
    than: tuple[str, ...]
    difference: float
    seeds: Summary | None
    queries: Difference | None
    verdict: str
    notes: tuple[str, ...] = ()
    pairs: tuple["FindingResult", ...] = ()

    @property
    def sentence(self) -> str:
        """The result in words."""
        where = ""
        if self.experiment is not None:
            where = f" ({self.experiment.title})"
        text = f"{self.claim}{where}: "
        if not math.isnan(self.difference):
            text += f"{self.difference:+.3f} {metric_title(self.metric)}, "
            if self.seeds is not None:
                text += f"{self.seeds.unit} {bounds(self.seeds)}, "
            if self.queries is not None:
                text += f"classes {bounds(self.queries)}"
            text = text.removesuffix(", ") + ": "
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{text}{self.verdict}{notes}"


def bounds(interval: Summary | Difference) -> str:
    """An interval of differences, with signs."""
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"
