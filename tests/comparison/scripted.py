"""Real processes that stand for trainings and take no time."""

import json
import subprocess
import sys
from pathlib import Path

from keras_dml.comparison.jobs import Job, make_jobs
from keras_dml.config.plans import parse_plan

# The results of a finished run, as short as they may be.
RESULTS = {
    "dataset": "digits",
    "recipe": "ln",
    "section": "default",
    "backbone": "small_cnn",
    "seed": 0,
    "train_classes": 10,
    "test_classes": 10,
    "num_queries": 10,
    "num_lone_queries": 0,
    "oracle": False,
    "partial": False,
    "seen": True,
    "selected_by": "last epoch",
    "validation": {},
    "pretrained_features": "raw pixels",
    "pretrained": {"map@r": 0.1},
    "before": {"map@r": 0.1},
    "after": {"map@r": 0.5},
    "train_seconds": 1.0,
    "versions": {},
}


def some_jobs(count: int, **values) -> list[Job]:
    """So many runs of one recipe."""
    plan = {
        "title": "T",
        "sources": ["digits"],
        "recipes": ["ln"],
        "seeds": list(range(count)),
    }
    return make_jobs(parse_plan(plan | values))


class Scripts:
    """Starts a Python script for each run; `{folder}` is the run folder.

    Args:
        scripts: Script by the number of the start; the last one is repeated.
    """

    FINISH = (
        "import pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "folder.mkdir(parents=True, exist_ok=True)\n"
        f"(folder / 'metrics.json').write_text({json.dumps(RESULTS)!r})\n"
    )

    def __init__(self, *scripts: str) -> None:
        self.scripts = scripts or (self.FINISH,)
        self.started: list[str] = []
        self.threads: list[int | None] = []

    def __call__(self, config, folder: Path, log: Path, threads=None):
        number = min(len(self.started), len(self.scripts) - 1)
        self.started.append(folder.name)
        self.threads.append(threads)
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-c", self.scripts[number], str(folder)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
