"""The files of a search, and the rule that a folder holds one search."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_dml.config import RunConfig
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.config.yaml_files import dump_yaml, read_yaml
from keras_dml.errors import UsageError
from keras_dml.files import write_text
from keras_dml.run.folder import RunFolder
from keras_dml.tuning.history import (
    History,
    mean_history,
    read_history,
)
from keras_dml.tuning.locks import WORKERS, exclusive


class TuningFolder:
    """Paths of one search.

    Args:
        path: The folder; nothing is made until `claim`.
        folds: Integer, the trainings of a trial. Defaults to `1`.
    """

    def __init__(self, path: str | Path, folds: int = 1) -> None:
        self.path = Path(path)
        self.folds = folds
        self.settings = self.path / "search.yaml"
        self.trials = self.path / "trials.csv"
        self.best = self.path / "best.yaml"
        self.figures = self.path / "figures"

    def run(self, name: str) -> Path:
        """The run folder of that name."""
        return self.path / "runs" / name

    def log(self, name: str) -> Path:
        """The log of the run of that name."""
        return self.path / "logs" / f"{name}.log"

    def output(self, name: str) -> Path:
        """Where a trial's output is: its log, or the folder of its logs."""
        return self.log(name) if self.folds == 1 else self.path / "logs"

    def parts(self, name: str) -> list[str]:
        """Names of the trainings of a trial: one for each fold."""
        if self.folds == 1:
            return [name]
        return [f"{name}-fold{fold}" for fold in range(self.folds)]

    def history(self, name: str, column: str) -> History:
        """What the trainings of a trial have written of their epochs."""
        histories = [
            read_history(RunFolder(self.run(part)).history, column)
            for part in self.parts(name)
        ]
        return histories[0] if self.folds == 1 else mean_history(histories)

    def claim(self, section: TuningConfig, reference: RunConfig) -> None:
        """Makes the folder, or checks that it belongs to the same search.

        Args:
            section: The `search` section. It may ask for more or fewer
                `trials` than before, except of a grid.
            reference: A configuration, all others differ from by the searched
                settings alone.

        Raises:
            UsageError: If the folder holds another search or something else.
        """
        settings: dict[str, Any] = {
            "search": section.model_dump(mode="json"),
            "run": reference.model_dump(mode="json"),
        }
        if section.kind != "grid":
            del settings["search"]["trials"]
        if self.folds > 1:
            settings["folds"] = self.folds
        self._check_free()
        with exclusive(self.path / WORKERS):
            if not self.settings.exists():
                write_text(self.settings, dump_yaml(settings))
        stored = _leaves(read_yaml(self.settings))
        given = _leaves(settings)
        changed = [
            f"`{key}` was {stored.get(key)!r}, received {given.get(key)!r}"
            for key in sorted(stored.keys() | given.keys())
            if stored.get(key) != given.get(key)
        ]
        if changed:
            raise UsageError(
                f"{self.path} holds a search with other settings: "
                f"{'; '.join(changed[:4])}. Go on with the same settings, or "
                "choose another folder."
            )

    def _check_free(self) -> None:
        """Refuses what holds something else; another may just begin here."""
        if self.settings.exists() or not self.path.exists():
            return
        begun = {WORKERS, f".{self.settings.stem}.partial.yaml"}
        if not self.path.is_dir() or any(
            item.name not in begun for item in self.path.iterdir()
        ):
            # Another command may have finished its first steps meanwhile.
            if self.settings.exists():
                return
            raise UsageError(
                f"{self.path} exists and is not the folder of a search (it "
                "has no `search.yaml`). Choose another folder."
            )


def _leaves(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted key; lists are values."""
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = _leaves(value).items()
            leaves.update({f"{key}.{name}": x for name, x in inner})
        else:
            leaves[key] = value
    return leaves
