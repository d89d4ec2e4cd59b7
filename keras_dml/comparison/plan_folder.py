"""The folder of a plan: one plan, one command at a time."""

from pathlib import Path
from typing import IO

from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.plans import dump_plan, parse_plan
from keras_dml.config.yaml_files import read_yaml
from keras_dml.errors import UsageError
from keras_dml.files import lock, write_text

LOCK = ".lock"


class PlanFolder:
    """Paths of a plan's results.

    Args:
        path: The folder; nothing is made until `open`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan = self.path / "plan.yaml"
        self.estimate = self.path / "estimate.json"
        self.results = self.path / "results.csv"
        self._lock: IO[str] | None = None

    def check(self, plan: PlanConfig) -> None:
        """Refuses a folder that holds something else than this plan.

        Raises:
            UsageError: If it does.
        """
        if not self.plan.is_file():
            if self.path.exists() and (
                not self.path.is_dir()
                or any(item.name != LOCK for item in self.path.iterdir())
            ):
                raise UsageError(
                    f"{self.path} exists and holds no plan (it has no "
                    "`plan.yaml`). Pass another `--output`."
                )
            return
        stored = parse_plan(read_yaml(self.plan))
        changed = [
            key
            for key in PlanConfig.model_fields
            if getattr(stored, key) != getattr(plan, key)
        ]
        if changed:
            raise UsageError(
                f"{self.path} was started with another plan: "
                f"{', '.join(f'`{key}`' for key in changed)} changed. Go on "
                "with the same plan, or pass another `--output`."
            )

    def open(self, plan: PlanConfig) -> None:
        """Makes the folder, and keeps other commands out of it.

        Raises:
            UsageError: If it holds something else, or another command is
                writing it.
        """
        self.check(plan)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self.path / LOCK)
        if self._lock is None:
            raise UsageError(
                f"Another command is writing {self.path}. Wait for it, or "
                "pass another `--output`."
            )
        if not self.plan.is_file():
            write_text(self.plan, dump_plan(plan))

    def close(self) -> None:
        """Lets other commands go on with the plan."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
