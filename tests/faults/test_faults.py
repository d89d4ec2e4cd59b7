"""A fault at any write of any command: nothing is lost, and it goes on.

The writes are found by tracing a command that nothing disturbs. Some of them
are struck, others for each fault; with `KERAS_DML_TEST_ALL=1` all of them are.
A disk that is full is a file system in memory without room.
"""

import contextlib
import dataclasses
import shutil
import signal
import time

import numpy as np
import pytest

from tests import disks
from tests.data.stand_ins import write_cub200
from tests.faults.commands import COMMANDS, Command, Inputs
from tests.faults.results import printed_results, results
from tests.forking import FAULTS, GROWING, Server
from tests.thorough import ALL

# More than any command leaves.
DISK = 512 * disks.MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def other_server(tmp_path_factory):
    """Goes on with what the other one began, as another process does."""
    server = Server(tmp_path_factory.mktemp("other_server"), hashing=2)
    yield server
    server.close()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return Inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def undisturbed(server, inputs, tmp_path_factory):
    """Function of a command's name: what it writes, leaves and prints."""
    folder = tmp_path_factory.mktemp("undisturbed")
    known = {}

    def ask(name):
        command = COMMANDS[name]
        if name != "fit":
            ask("fit")
        if name not in known:
            place = inputs.paths["run"] if name == "fit" else folder / name
            inputs.make(command, place)
            started = time.monotonic()
            outcome = server(place, command.words(inputs, place))
            assert outcome.code == 0, outcome.end
            seconds = time.monotonic() - started
            known[name] = Undisturbed(
                command, outcome.writes, seconds, left_by(outcome, place)
            )
        return known[name]

    return ask


def left_by(outcome, place):
    return {**results(place), "printed": printed_results(outcome.out, place)}


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """A command that nothing disturbed.

    Attributes:
        command: The command.
        writes: One line a write.
        seconds: How long it took.
        expected: What it left and printed.
    """

    command: Command
    writes: list[str]
    seconds: float
    expected: dict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (name, fault)
        for name, command in COMMANDS.items()
        for fault in (FAULTS if ALL else command.faults)
    ],
)
def test_a_fault_at_a_write(
    name, fault, server, other_server, inputs, undisturbed, tmp_path
):
    it = undisturbed(name)
    numbers = range(1, len(it.writes) + 1)
    if fault == "full":
        numbers = [n for n in numbers if grows(it.writes[n - 1])]
    if not ALL:
        # Others for each fault, though the same ones each time.
        rng = np.random.default_rng([*FAULTS].index(fault))
        numbers = rng.choice(numbers, it.command.faults[fault], replace=False)
    for number in map(int, numbers):
        where = f"{fault} before write {number}, {it.writes[number - 1]}"
        with room(fault, tmp_path / str(number)) as folder:
            place = folder / "place"
            inputs.make(it.command, place)
            words = it.command.words(inputs, place)
            outcome = server(place, words, fault, number)
            check_end(fault, outcome, where)
            if fault == "full":
                disks.resize(folder, DISK)
            goes_on(it, other_server, inputs, place, outcome, where)


@contextlib.contextmanager
def room(fault, folder):
    """Makes a folder, which is a disk of its own where that will be full."""
    if fault == "full":
        with disks.disk(folder, DISK):
            yield folder
    else:
        folder.mkdir()
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, one in COMMANDS.items() if ALL or one.random]
)
def test_an_end_at_a_random_moment(
    name, server, other_server, inputs, undisturbed, tmp_path
):
    it = undisturbed(name)
    rng = np.random.default_rng(0)
    for number in range(20 if ALL else it.command.random):
        place = tmp_path / str(number)
        inputs.make(it.command, place)
        seconds = rng.uniform(0.1, 1.0) * it.seconds
        words = it.command.words(inputs, place)
        outcome = server(place, words, seconds=seconds)
        where = f"the end after {seconds} of {it.seconds} s"
        assert outcome.code in (0, -signal.SIGALRM), (where, outcome.end)
        goes_on(it, other_server, inputs, place, outcome, where)


@pytest.mark.slow
def test_a_data_set_is_checked_and_not_written_to(server, tmp_path):
    write_cub200(tmp_path, ["a/0.jpg", "a/1.jpg"], [1, 101])
    outcome = server(tmp_path, ("prepare", "cub200", "--data-dir", tmp_path))
    assert "no image at all" in outcome.out, outcome.end
    assert outcome.writes == []


def goes_on(it, server, inputs, place, outcome, where):
    """Fails unless the command, if called again, leaves what it should."""
    if outcome.code:
        outcome = server(place, it.command.words(inputs, place, again=True))
        assert outcome.code == 0, (where, outcome.end)
    left = left_by(outcome, place)
    assert differences(left, it.expected) == [], where
    shutil.rmtree(place)


def grows(line):
    return line.partition(" ")[0] in GROWING


def check_end(fault, outcome, where):
    """Fails unless a command ended as it must under the fault."""
    ends = {
        "kill": [-9],
        "terminate": [143, -15, 0],
        "interrupt": [130, 0],
        "stop": [0],
        "full": [1],
    }
    assert outcome.code in ends[fault], (where, outcome.end)
    assert "Traceback" not in outcome.err, (where, outcome.end)
    if fault == "full":
        assert "The disk is full" in outcome.err, (where, outcome.end)


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
