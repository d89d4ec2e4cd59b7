"""Runs hostile cases: each must end in time, in memory and in a sentence.

A table of `Case`s says what is done to the input, which command reads it, and
how that command must end. One in ten is part of the default tests; the others
are marked `slow`.

    CASES = [
        Case(
            "an empty metrics.json",
            ("evaluate", "<run>"),
            "metrics.json",
            harm=lambda run: (run / "metrics.json").write_text(""),
        ),
    ]

    @pytest.mark.parametrize("case", table(CASES))
    def test_hostile(case, run, capsys, monkeypatch):
        case.harm(run)
        case.check(capsys, monkeypatch, run=run)
"""

import contextlib
import dataclasses
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Outcome, run_command
from tests.zygote import Forked

# Of computing. A command may wait as long again, and more on a busy machine.
SECONDS = 30
GIB = 2**30
# What importing TensorFlow takes is part of it.
MEMORY = 6 * GIB
# The test process holds TensorFlow already.
GROWTH = 2 * GIB
LONGEST = 1500


class TooSlow(BaseException):
    """Not an `Exception`, which the code under test might catch."""


def _nothing(place: Path) -> None:
    pass


@dataclasses.dataclass(frozen=True)
class Case:
    """One hostile input, and how a command must end that reads it.

    Args:
        name: What is wrong with the input.
        arguments: Words after `keras-dml`; `<name>` stands for the place of
            this name that `check` receives.
        message: Pattern that standard error must contain.
        code: The exit code. Defaults to `2`, a refusal.
        harm: Function that damages a place, called by the test. Defaults to
            none.
        apart: Whether to run in a process of its own that is stopped beyond
            `SECONDS` or `MEMORY`: for what may hang in compiled code or eat
            memory. Defaults to `False`, inside the test process.
        quick: Whether the case is part of the default tests wherever it
            stands in its table. Defaults to `False`.
    """

    name: str
    arguments: Sequence[str]
    message: str = ""
    code: int = 2
    harm: Callable[[Path], Any] = _nothing
    apart: bool = False
    quick: bool = False

    def check(self, capsys, monkeypatch, **places: Any) -> Outcome:
        """Runs the command, and fails unless it ends as the case says."""
        words = [_filled(word, places) for word in self.arguments]
        if self.apart:
            outcome = run_apart(*words)
        else:
            with limited():
                outcome = run_command(capsys, monkeypatch, *words)
        check_outcome(outcome, self.code, self.message)
        return outcome


def table(cases: Sequence[Case], quick_in: int = 10) -> list[Any]:
    """Returns the cases as parameters of a test; most are marked `slow`."""
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    assert not repeated, repeated
    return [
        pytest.param(
            case,
            id=case.name,
            marks=[]
            if case.quick or number % quick_in == 0
            else [pytest.mark.slow],
        )
        for number, case in enumerate(cases)
    ]


def check_outcome(outcome: Outcome, code: int, message: str) -> None:
    """Fails unless a command ended with this code and a short message."""
    shown = outcome.err[-2 * LONGEST :]
    assert outcome.code == code, f"{outcome.code} instead of {code}: {shown}"
    assert "Traceback" not in outcome.err, shown
    assert re.search(message, outcome.err), shown
    if code:
        said = outcome.err.rpartition("Error")[2].strip()
        assert said, outcome
        assert len(said) <= LONGEST, f"{len(said)} characters: {said[:200]}"


@contextlib.contextmanager
def limited(seconds: float = SECONDS, growth: int = GROWTH) -> Iterator[None]:
    """Raises `TooSlow` in the block after a time, and checks its memory.

    Args:
        seconds: How long it may compute, see `longest`. Defaults to `SECONDS`.
        growth: Bytes by which the process may grow. Defaults to `GROWTH`.
    """
    timers = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, longest(seconds)),
    }

    def stop(number, frame):
        raise TooSlow(f"no end within {seconds} seconds")

    before = _held_since_now()
    former = {one: signal.signal(one, stop) for one, _ in timers.values()}
    for timer, (_, time_left) in timers.items():
        signal.setitimer(timer, time_left)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for one, handler in former.items():
            signal.signal(one, handler)
    grown = _status("VmHWM") - before
    assert grown <= growth, f"{grown / GIB:.1f} GiB more"


def run_apart(
    *words: str,
    module: str = "keras_dml",
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> Outcome:
    """Runs a command in a session of its own, and kills it beyond limits.

    Args:
        *words: Its arguments.
        module: The module that runs. Defaults to `"keras_dml"`.
        seconds: How long it may compute, see `longest`. Defaults to `SECONDS`.
        memory: Bytes that its session may hold, which are those of the command
            and of what it starts. An address-space limit would also
            count what TensorFlow only reserves. Defaults to `MEMORY`.
    """
    # Files, because a pipe that nobody reads would block the process.
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        process = Forked(module, *words, stdin=nothing, stdout=out, stderr=err)
        end, excess = time.monotonic() + longest(seconds), ""
        while process.poll() is None and not excess:
            computed, held = _used(process.pid)
            if held > memory:
                excess = f"{held / GIB:.1f} GiB held"
            if computed > seconds or time.monotonic() > end:
                excess = f"no end within {seconds} seconds"
            time.sleep(0.05)
        if excess:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed = [_text(file) for file in (out, err)]
    assert not excess, f"{excess}: {' '.join(words)}\n{printed[1][-LONGEST:]}"
    return Outcome(process.returncode, *printed)


def _filled(word: str, places: dict[str, Any]) -> str:
    for name, place in places.items():
        word = word.replace(f"<{name}>", str(place))
    return word


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def longest(seconds: float) -> float:
    """Returns how long what computes for some seconds may take in all.

    It is twice as long, and as many times more as processes wait for each
    processor of this machine.
    """
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return 2 * seconds * max(1.0, waiting)


def _held_since_now() -> int:
    """Returns the bytes that this process holds, and forgets their peak."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


def _used(session: int) -> tuple[float, int]:
    """Returns the seconds that a session computed, and the bytes it holds.

    A session is a command and the processes that it started.
    """
    ticks = pages = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Gone, if it has just ended. Its name may hold blanks.
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += int(fields[11]) + int(fields[12])
                pages += int(fields[21])
    seconds = ticks / os.sysconf("SC_CLK_TCK")
    return seconds, pages * os.sysconf("SC_PAGESIZE")
