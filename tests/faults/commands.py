"""The commands that faults strike, and what they work on."""

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.checkpoints import changed_googlenet, write_googlenet
from tests.images import image_folder

PLAN = """
title: Faults
sources: ["<images>"]
recipes: [norm_softmax]
backbones: [small_cnn]
protocol: {kind: fixed_validation}
budget: {epochs: 1, steps_per_epoch: 1}
set: {data.validation_from: 4, evaluation.every: 1}
tuning: {kind: grid, trials: 1, space: {model.dim: [8]}}
"""


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, and how often its writes are struck, unless all of them are.

    Args:
        arguments: Words after `keras-dml`. `<images>`, `<run>`, `<plan>` and
            `<checkpoint>` stand for what a command reads, `<place>` for the
            folder that it writes to.
        again: Words that are added after a fault. Defaults to none.
        works_on_run: Whether `<place>` starts as a copy of the run, without
            its cached embeddings. Defaults to `False`.
        faults: How many writes each fault strikes, by its name. Defaults to
            one kill.
        random: Integer, how many ends come at random moments. Defaults to `0`.
    """

    arguments: str
    again: str = ""
    works_on_run: bool = False
    faults: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: {"kill": 1}
    )
    random: int = 0

    def words(
        self, inputs: "Inputs", place: Path, again: bool = False
    ) -> Sequence[str]:
        line = f"{self.arguments} {self.again if again else ''}"
        for name, path in {**inputs.paths, "place": place}.items():
            line = line.replace(f"<{name}>", str(path))
        return line.split()


COMMANDS = {
    "fit": Command(
        "fit <images> --output <place> --backbone small_cnn --epochs 2 --dim 16"
        " --set sampling.steps_per_epoch=1 --set evaluation.every=1",
        again="--resume",
        faults={"kill": 1, "interrupt": 1, "full": 1},
    ),
    # `passes` settles the length before the pace of the machine does.
    "fit_final": Command(
        "fit <images> --output <place> --backbone small_cnn --minutes 60"
        " --final all --dim 16 --set stages.main.train.epochs=null"
        " --set passes=2 --no-report --no-export",
        again="--resume",
        faults={},
    ),
    "embed": Command(
        "embed <run> <images> --output <place> --shard-size 50",
        again="--resume",
        faults={"kill": 1, "terminate": 1, "stop": 1, "full": 1},
        random=1,
    ),
    "embed_file": Command(
        "embed <run> <images> --output <place>/vectors.npz --shard-size 50",
        again="--resume",
        faults={},
    ),
    "embed_parquet": Command(
        "embed <run> <images> --output <place>/vectors.parquet --shard-size 50",
        again="--resume",
        faults={},
    ),
    "search": Command(
        "search <place> <images>/class_03/0.png --gallery <images>"
        " --picture <place>/found.png --json",
        works_on_run=True,
        faults={},
    ),
    "evaluate": Command(
        "evaluate <place> --source <images> --intervals --clustering --json",
        works_on_run=True,
        faults={},
    ),
    "report": Command("report <place>", works_on_run=True),
    "compare": Command(
        "compare <images> --output <place> --recipes norm_softmax"
        " --backbones small_cnn --epochs 1 --steps-per-epoch 1 --no-report"
        " --no-estimate --protocol recipe",
    ),
    "tune": Command("compare <plan> --output <place> --no-estimate", faults={}),
    "export_saved_model": Command(
        "export <run> --format saved_model --with-index --output <place>"
    ),
    "export_litert": Command(
        "export <run> --format litert --quantize int8 --with-references"
        " --output <place>",
        faults={"full": 1},
    ),
    "export_onnx": Command(
        "export <run> --format onnx --output <place>", faults={}
    ),
    "convert_weights": Command(
        "convert-weights <checkpoint> --network googlenet"
        " --output <place>/googlenet.weights.h5",
        again="--force",
        faults={"full": 1},
    ),
}


class Inputs:
    """What commands read, each made when it is first asked for.

    Args:
        folder: An empty folder.

    Attributes:
        paths: The path of each by its name in `Command.arguments`.
    """

    def __init__(self, folder: Path) -> None:
        self.paths = {
            name: folder / name
            for name in ("images", "run", "plan", "checkpoint")
        }
        images = self.paths["images"]
        image_folder(images, classes=12, images=6, size=16, suffix=".png")
        self.paths["plan"] = folder / "plan.yaml"
        self.paths["plan"].write_text(PLAN.replace("<images>", str(images)))
        self.paths["checkpoint"] = folder / "googlenet.npz"

    def make(self, command: Command, place: Path) -> None:
        """Makes what a command needs before it is called."""
        if command.works_on_run:
            left_out = shutil.ignore_patterns("embeddings")
            shutil.copytree(self.paths["run"], place, ignore=left_out)
        checkpoint = self.paths["checkpoint"]
        if "<checkpoint>" in command.arguments and not checkpoint.exists():
            write_googlenet(checkpoint, changed_googlenet())
