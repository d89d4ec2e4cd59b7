"""The folder of a plan, and the trainings in it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.comparison.growth import additions, grown
from keras_dml.comparison.jobs import Job
from keras_dml.comparison.pace import FILE as PACES
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.plans import RECORD, dump_plan, parse_plan
from keras_dml.config.yaml_files import read_yaml
from keras_dml.console import logger
from keras_dml.files import write_text
from keras_dml.run.folder import RunFolder
from keras_dml.run.processes import (
    Start,
    TrainingProcess,
    start_training,
    threads_each,
)
from keras_dml.run.supervise import supervise

OnDone = Callable[[Job, float, Mapping[str, str]], None]


class PlanFolder(ClaimedFolder):
    """The folder of one plan, which one process at a time writes to."""

    kind = "the folder of a plan"
    record_name = RECORD
    # Written before the plan if only the pace is measured.
    passing = frozenset({PACES})

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.results = self.path / "results.csv"

    def grown(self, plan: PlanConfig) -> PlanConfig:
        """Returns the plan of the folder with what a plan adds to it.

        Args:
            plan: The plan that a command asks for. A folder without a plan
                takes all of it.

        Raises:
            UsageError: If the folder holds foreign files, or the plan would
                change runs of the folder.
        """
        self.check_free()
        if not self.exists:
            return plan
        return grown(parse_plan(read_yaml(self.record)), plan)

    def open(self, plan: PlanConfig) -> None:
        """Creates the folder, locks it and writes the plan.

        Raises:
            UsageError: As `grown`, or if another process is writing to the
                folder.
        """
        self.check_free()
        self.lock()
        if self.exists:
            stored = parse_plan(read_yaml(self.record))
            plan = grown(stored, plan)
            added = additions(stored, plan)
            if added:
                logger.info("Added to %s: %s.", self.path, added)
        write_text(self.record, dump_plan(plan))

    def run(self, job: Job) -> RunFolder:
        """Returns the folder of a run."""
        return RunFolder(self.path / "runs" / job.run)

    def train(
        self,
        jobs: Sequence[Job],
        processes: int = 1,
        on_done: OnDone = lambda job, seconds, failed: None,
        *,
        start: Start = start_training,
    ) -> dict[str, str]:
        """Trains the unfinished jobs; continues after a failed one.

        Args:
            jobs: The runs of a plan. Equal runs are trained once.
            processes: How many runs train at once; they share the cores.
                Defaults to `1`.
            on_done: Called after each job, one call at a time, with the job,
                its seconds (0 if the run was finished before) and the reasons
                of the runs that failed so far. Defaults to a function that
                does nothing.
            start: Starts a training. Defaults to `start_training`.

        Returns:
            Dict from each failed run to the reason.

        Raises:
            RunError: If the disk is full. Finished runs stay complete.
            PreemptedError: On SIGTERM, with all trainings saved.
            KeyboardInterrupt: On Ctrl-C, with all trainings saved.
        """
        distinct = {job.run: job for job in jobs}
        failed: dict[str, str] = {}
        left = iter(
            TrainingProcess(
                job.config,
                self.run(job).path,
                self.path / "logs" / f"{job.run}.log",
                threads_each(processes),
                start=start,
            )
            for job in distinct.values()
        )

        def ended(training: TrainingProcess) -> None:
            if training.exit_code:
                failed[training.name] = training.reason()
                logger.warning(
                    "%s failed: %s", training.name, failed[training.name]
                )
            on_done(distinct[training.name], training.seconds, failed)

        supervise(lambda: next(left, None), ended, processes=processes)
        return failed
