"""A fault at any write of any command: nothing is lost, and it goes on.

The writes are found by tracing a command that nothing disturbs. Some of them
are struck, others for each fault; with `KERAS_DML_TEST_ALL=1` all of them are.
"""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.faults.results import results
from tests.faults.server import FAULTS, GROWING
from tests.images import image_folder
from tests.thorough import ALL


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, and how often its writes are struck, unless all of them are.

    Args:
        arguments: Words after `keras-dml`; `<images>`, `<run>` and `<place>`
            stand for folders.
        again: Words that are added after a fault. Defaults to none.
        strikes: Integer, how many writes a kill or a full disk strikes; other
            faults strike one. Defaults to `1`.
        faults: The faults that strike it. Defaults to a kill and a full disk.
    """

    arguments: str
    again: str = ""
    strikes: int = 1
    faults: Sequence[str] = ("kill", "full")

    def words(self, places, again=False):
        words = f"{self.arguments} {self.again if again else ''}".split()
        return [places.get(word, word) for word in words]


COMMANDS = {
    "fit": Command(
        "fit <images> --output <place> --backbone small_cnn --epochs 2 --dim 16"
        " --set sampling.steps_per_epoch=1 --set evaluation.every=1",
        again="--resume",
        strikes=2,
        faults=tuple(FAULTS),
    ),
    "embed": Command("embed <run> <images> --output <place>", again="--resume"),
    "report": Command("report <place>"),
    "compare": Command(
        "compare <images> --output <place> --recipes norm_softmax,triplet"
        " --backbones small_cnn --epochs 1 --steps-per-epoch 1 --no-report"
        " --no-estimate --protocol recipe",
    ),
    "export_saved_model": Command(
        "export <run> --format saved_model --output <place>"
    ),
    "export_litert": Command("export <run> --format litert --output <place>"),
}


class Server:
    """Commands in processes that are forked from one that imported all."""

    def __init__(self, folder):
        self.printed, self.trace = folder / "printed.txt", folder / "trace.txt"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, place, words, fault=None, write=0, moment=0.0):
        """Returns the exit code, what was printed, and the writes."""
        request = {
            "arguments": list(map(str, words)),
            "folder": str(place),
            "fault": fault,
            "write": write,
            "moment": moment,
            "printed": str(self.printed),
            "trace": str(self.trace),
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())
        writes = self.trace.read_text().splitlines()
        return code, self.printed.read_text(errors="replace"), writes

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "paint"
    return image_folder(folder, classes=12, images=6, size=16, suffix=".png")


@pytest.fixture(scope="module")
def undisturbed(server, images, tmp_path_factory):
    """Function of a command's name: its words, writes and results."""
    folder = tmp_path_factory.mktemp("undisturbed")
    known = {}

    def begin(name, place):
        """Makes what the command needs; returns its words, by again or not."""
        run = known["fit"][1] if name != "fit" else None
        if name == "report":
            shutil.copytree(run, place)
        places = {"<images>": images, "<run>": run, "<place>": place}
        return [COMMANDS[name].words(places, again) for again in (False, True)]

    def ask(name):
        if name != "fit" and "fit" not in known:
            ask("fit")
        if name not in known:
            place = folder / name
            words, _ = begin(name, place)
            started = time.monotonic()
            code, printed, writes = server(place, words)
            assert code == 0, printed
            seconds = time.monotonic() - started
            known[name] = (writes, place, results(place), seconds)
        writes, _, expected, seconds = known[name]
        return Undisturbed(writes, seconds, expected, begin)

    return ask


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """A command that nothing disturbed, and how to begin it again.

    Attributes:
        writes: One line a write.
        seconds: How long it took.
        expected: What it left.
        begin: Function of its name and a place that returns its words, at
            first and after a fault.
    """

    writes: list[str]
    seconds: float
    expected: dict
    begin: Callable


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (name, fault)
        for name, command in COMMANDS.items()
        for fault in (FAULTS if ALL else command.faults)
    ],
)
def test_a_fault_at_a_write(name, fault, server, undisturbed, tmp_path):
    it = undisturbed(name)
    numbers = range(1, len(it.writes) + 1)
    if fault == "full":
        numbers = [n for n in numbers if grows(it.writes[n - 1])]
    if not ALL:
        # Others for each fault, though the same ones each time.
        rng = np.random.default_rng([*FAULTS].index(fault))
        strikes = COMMANDS[name].strikes if fault in ("kill", "full") else 1
        numbers = rng.choice(numbers, strikes, replace=False)
    for number in map(int, numbers):
        place = tmp_path / str(number)
        first, again = it.begin(name, place)
        code, printed, _ = server(place, first, fault, number)
        where = f"{fault} before write {number}, {it.writes[number - 1]}"
        check_end(fault, code, printed, where)
        goes_on(it, server, place, code and again, where)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_end_at_a_random_moment(name, server, undisturbed, tmp_path):
    it = undisturbed(name)
    rng = np.random.default_rng(0)
    for number in range(20 if ALL else 1):
        place = tmp_path / str(number)
        first, again = it.begin(name, place)
        moment = rng.uniform(0.1, 1.0) * it.seconds
        code, printed, _ = server(place, first, moment=moment)
        where = f"the end after {moment} of {it.seconds} s"
        assert code in (0, -signal.SIGALRM), (where, printed[-2000:])
        goes_on(it, server, place, code and again, where)


def goes_on(it, server, place, words, where):
    """Fails unless the command, if called again, leaves what it should."""
    if words:
        code, printed, _ = server(place, words)
        assert code == 0, (where, printed[-2000:])
    left = [path.name for path in place.rglob("*") if "partial" in path.name]
    assert not left, where
    assert differences(results(place), it.expected) == [], where
    shutil.rmtree(place)


def grows(line):
    return line.partition(" ")[0] in GROWING


def check_end(fault, code, printed, where):
    """Fails unless a command ended as it must under the fault."""
    ends = {
        "kill": [-9],
        "terminate": [143, -15, 0],
        "interrupt": [130, 0],
        "stop": [0],
        "full": [1],
    }
    assert code in ends[fault], (where, code, printed[-2000:])
    assert "Traceback" not in printed, (where, printed[-2000:])
    if fault == "full":
        assert "The disk is full" in printed, (where, printed[-2000:])


def differences(actual, expected):
    """Returns the places where two results differ."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        return [
            f"{name}/{place}"
            for name in actual.keys() | expected.keys()
            for place in differences(actual.get(name), expected.get(name))
        ]
    if isinstance(actual, list) and isinstance(expected, list):
        return differences(*map(dict, map(enumerate, (actual, expected))))
    return [] if actual == expected else [f": {actual!r:.99} {expected!r:.99}"]
