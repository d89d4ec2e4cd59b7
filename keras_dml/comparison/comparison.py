"""The runs of a plan, what they found, and where that is written."""

import dataclasses
import functools
import itertools
from pathlib import Path
from typing import Any

from keras_dml.brief import Brief
from keras_dml.comparison.estimate import Estimate
from keras_dml.comparison.page.page import HTML_FILE
from keras_dml.comparison.records import (
    STATUSES,
    Experiment,
    RunRecord,
    by_arm,
    counts_in_words,
    trained_runs,
)
from keras_dml.comparison.standings import (
    Standing,
    conclusions,
    gap_rows,
    needs_seeds,
    ranking_rows,
    standings,
)
from keras_dml.wording import metric_title


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Brief):
    """The runs of a plan and the page about them.

    Args:
        folder: The plan's folder.
        records: The records of its runs.
        report: The page as Markdown, or `None` after a dry run.
        estimate: How long all remaining trainings take, one after the other.
            Defaults to `None`: not estimated, or nothing remains.
        trials_left: Number of tuning trials that remain before the runs.
            Defaults to `0`.
        metric: The metric that ranks the arms when the object is printed.
            Defaults to `"map@r"`.
    """

    folder: Path
    records: list[RunRecord]
    report: Path | None = None
    estimate: Estimate | None = None
    trials_left: int = 0
    metric: str = "map@r"

    def count(self, status: str) -> int:
        """Counts the runs of a status: done, running, to do or failed."""
        trained = trained_runs(self.records)
        return len(
            {record.run for record in trained if record.status == status}
        )

    @property
    def page(self) -> Path | None:
        """The page as HTML, or `None` after a dry run."""
        return self.report.with_name(HTML_FILE) if self.report else None

    @property
    def seconds(self) -> float | None:
        """The likely seconds of the estimate."""
        return self.estimate.seconds if self.estimate else None

    @property
    def runs(self) -> set[str]:
        """The names of the runs of the plan."""
        return {record.run for record in trained_runs(self.records)}

    @property
    def best(self) -> Path | None:
        """The folder of a run of the best arm; `None` without a ranking.

        Arms of different data or networks are not ranked among each other.
        """
        trained = trained_runs(self.records)
        ranked = standings(trained, self.metrics, self.metric)
        if len(ranked) != 1:
            return None
        ((best, *_),) = ranked.values()
        folders = (
            record.folder
            for record in trained
            if record.arm == best.arm and record.status == "done"
        )
        return next(folders, None)

    @property
    def failed(self) -> dict[str, str]:
        """Maps the name of each failed run to the reason."""
        return {r.run: r.error for r in self.records if r.status == "failed"}

    def summary(self) -> dict[str, Any]:
        """Returns places, counts and errors as plain values, for JSON."""
        return {
            "folder": str(self.folder),
            "report": str(self.report) if self.report else None,
            "page": str(self.page) if self.page else None,
            **{key.replace(" ", "_"): self.count(key) for key in STATUSES},
            "trials_left": self.trials_left,
            "seconds_estimated": self.seconds,
            "seconds_low": self.estimate.low if self.estimate else None,
            "seconds_high": self.estimate.high if self.estimate else None,
            "errors": self.failed,
        }

    @property
    def metrics(self) -> list[str]:
        """The metrics that `rankings` shows."""
        return [*dict.fromkeys(("recall@1", self.metric))]

    def rankings(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Returns the arms of each experiment, best first, in two tables.

        Returns:
            List of pairs of a title and the rows of a table: the means with
            their deviations, and the paired differences from the best with
            their 95 % intervals over seeds and over test classes.
        """
        tables = []
        for experiment, arms in self._standings.items():
            rows = ranking_rows(arms, self.metrics)
            # Without the marks of Markdown.
            tables.append((experiment.title.replace("`", ""), rows))
            behind = gap_rows(arms)
            if behind:
                name = metric_title(self.metric)
                intervals = [key for key in behind[0] if "interval" in key]
                its = "intervals" if len(intervals) > 1 else "interval"
                tables.append(
                    (
                        f"{name}: the gap from the leading arm, {arms[0].arm}, "
                        f"and its 95 % {its}",
                        behind,
                    )
                )
        return tables

    def conclusions(self) -> list[str]:
        """Says of each experiment which arm is best, and how surely."""
        return conclusions(self._standings, metric_title(self.metric))

    def further_seeds(self) -> list[int]:
        """Returns the seeds with which the comparison would tell more.

        Returns:
            Its own and new ones, three or twice as many; empty if there is
            one arm only, or several seeds rank the arms alike.
        """
        compared = [arms for arms in self._standings.values() if len(arms) > 1]
        own = {record.seed for record in trained_runs(self.records)}
        settled = len(own) > 1 and not any(map(needs_seeds, compared))
        if settled or not compared:
            return []
        new = (seed for seed in itertools.count() if seed not in own)
        more = itertools.islice(new, max(3 - len(own), len(own)))
        return sorted([*own, *more])

    @functools.cached_property
    def _standings(self) -> dict[Experiment, list[Standing]]:
        return standings(self.records, self.metrics, self.metric)

    def _brief_title(self) -> str:
        counts = counts_in_words(trained_runs(self.records))
        return f"Comparison in {self.folder}: {counts}"

    def _brief_rows(self) -> list[dict[str, Any]]:
        """Averages each arm over data, networks and seeds, best first."""
        done = [r for r in trained_runs(self.records) if r.status == "done"]
        values = {
            arm: [r.after[self.metric] for r in runs if self.metric in r.after]
            for arm, runs in by_arm(done).items()
        }
        rows = [
            {"arm": arm, self.metric: sum(own) / len(own), "runs": len(own)}
            for arm, own in values.items()
            if own
        ]
        return sorted(rows, key=lambda row: -row[self.metric])
