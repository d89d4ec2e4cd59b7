"""How fast runs are: as earlier runs were, else as their network suggests."""

import dataclasses
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from keras_dml.backbone_facts import BackboneFacts, known_backbones
from keras_dml.comparison.work import FORWARD, Kind, Work
from keras_dml.config import load_run_config
from keras_dml.errors import UsageError
from keras_dml.files import read_json, write_json
from keras_dml.run.folder import RunFolder

FILE = "estimate.json"
# Seconds that a run takes beside its steps and images: to start, to trace the
# graph and to save. Measured on two cores.
START = 12.0
# Billions of multiplications that a core does in a second of training. A core
# of a server of 2025 did 45 with MobileNetV2 and 90 with `small_cnn`; others do
# less. A GPU is assumed to do as many as 100 cores.
PER_CORE = 30.0
GPU_CORES = 100
# How far off the seconds may be, by what they come from.
MEASURED, ELSEWHERE, SCALED, MODELED = 1.3, 1.6, 2.5, 5.0
# Steps of up to so many times as many products take time in proportion.
ALIKE = 4.0
# At most so many runs beside the folder are read, the newest.
MOST_RUNS = 40


@dataclasses.dataclass(frozen=True)
class RunPace:
    """The speed of a kind of run.

    Args:
        start: Seconds before the first step and after the last.
        step: Seconds of a training step.
    """

    start: float
    step: float

    @classmethod
    def of_run(cls, work: Work, seconds: float, training: float) -> "RunPace":
        """Returns the pace of a run that has ended.

        Args:
            work: What it computed.
            seconds: Its seconds from start to end.
            training: Those of its epochs, validation included.
        """
        step = training / max(work.steps + work.validated, 1)
        return cls(max(0.0, seconds - training - step * work.tested), step)

    def seconds(self, work: Work) -> float:
        """Returns the seconds of a run."""
        return self.start + self.step * (
            work.steps + work.validated + work.tested
        )


class Known(NamedTuple):
    """A pace, and how sure it is.

    Args:
        pace: The pace.
        factor: How many times longer or shorter a run may take.
        basis: Where the pace comes from, in words.
    """

    pace: RunPace
    factor: float
    basis: str


def modeled(work: Work) -> RunPace:
    """Returns the pace that the network, its images and the device suggest."""
    name, size, batch = work.kind
    unknown = BackboneFacts(name, "", "", "", "")
    facts = known_backbones().get(name, unknown)
    share = (size / facts.image_size) ** 2
    gpus = len(tf.config.list_physical_devices("GPU"))
    cores = GPU_CORES if gpus else os.cpu_count() or 1
    products = batch * facts.gigamacs * share / FORWARD
    return RunPace(START, products / (PER_CORE * cores))


class Paces:
    """The paces of runs in the folder of a comparison and beside it.

    Args:
        folder: The folder. Only `learn` writes to it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._own = {**_of_runs(folder / "runs"), **_stored(self.path)}
        beside = folder.absolute().parent
        self._others = _of_runs(beside)
        for path in sorted(beside.glob(f"*/{FILE}")):
            self._others |= _stored(path)

    def of(self, work: Work) -> Known:
        """Returns the pace of a run and how sure it is."""
        if work.kind in self._own:
            pace = self._own[work.kind]
            return Known(pace, MEASURED, "from this comparison")
        if work.kind in self._others:
            pace = self._others[work.kind]
            return Known(pace, ELSEWHERE, "from earlier runs beside it")
        expected = modeled(work)
        known = [
            (modeled(Work(*kind, steps=0)).step, pace)
            for kind, pace in {**self._others, **self._own}.items()
            if kind[0] == work.backbone
        ]
        if known:
            like, pace = min(
                known, key=lambda one: abs(math.log(one[0] / expected.step))
            )
            ratio = expected.step / like
            step, factor = pace.step * ratio, SCALED
            if not 1 / ALIKE <= ratio <= ALIKE:
                # A part of a short step does not grow with what it computes.
                more = max(0.0, expected.step - like)
                step, factor = min(step, pace.step + MODELED * more), MODELED
            basis = f"scaled from other runs of {work.backbone}"
            return Known(RunPace(pace.start, step), factor, basis)
        basis = "a guess from the network, the images and this computer"
        return Known(expected, MODELED, basis)

    def measured(self, work: Work) -> bool:
        """Whether a run of this kind was measured in this comparison."""
        return work.kind in self._own

    def learn(self, work: Work, pace: RunPace) -> None:
        """Keeps the pace of a run for later commands."""
        self._own[work.kind] = pace
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [[*kind, one.start, one.step] for kind, one in self._own.items()]
        write_json(self.path, rows)


def _stored(path: Path) -> dict[Kind, RunPace]:
    """Reads the file of `Paces.learn`; version 0.1 wrote others."""
    rows = read_json(path)
    if not isinstance(rows, list):
        return {}
    return {tuple(row[:3]): RunPace(*row[3:]) for row in rows if len(row) == 5}


def _of_runs(folder: Path) -> dict[Kind, RunPace]:
    """Returns the paces of the newest finished runs in a folder."""
    found = sorted(
        folder.glob("*/metrics.json"), key=lambda path: path.stat().st_mtime
    )
    runs = [RunFolder(path.parent) for path in found[-MOST_RUNS:]]
    return {kind: pace for run in runs for kind, pace in _of_run(run)}


def _of_run(run: RunFolder) -> Iterator[tuple[Kind, RunPace]]:
    metrics = read_json(run.metrics)
    try:
        config = load_run_config(run.record)
        steps, seconds = metrics["length"]["steps"], metrics["train_seconds"]
    except (UsageError, OSError, KeyError, TypeError):
        return
    if steps and seconds:
        yield Work.of(config).kind, RunPace(START, seconds / steps)
