"""Real processes that stand for trainings and take no time."""

import json
import subprocess
import sys
from pathlib import Path

from keras_dml.comparison.jobs import Job, make_jobs
from keras_dml.config.plans import parse_plan

# What a comparison reads of a finished run.
RESULTS = {
    "after": {},
    "before": {},
    "pretrained": {},
    "validation": {},
    "oracle": False,
    "train_seconds": 1.0,
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
