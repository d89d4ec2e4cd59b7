"""The runner of hostile cases finds what it is there to find."""

import time

import pytest

from tests.commands import Outcome
from tests.hostile.runner import (
    GIB,
    Case,
    TooSlow,
    check_outcome,
    limited,
    longest,
    run_apart,
    table,
)


@pytest.fixture
def run_script(tmp_path, monkeypatch):
    """Function that runs lines of Python apart."""
    monkeypatch.chdir(tmp_path)

    def run(text, **limits):
        (tmp_path / "script.py").write_text(text)
        return run_apart(module="script", **limits)

    return run


def test_a_hang_is_stopped(run_script):
    with pytest.raises(AssertionError, match="no end within"):
        run_script("import time; time.sleep(60)", seconds=0.1)
    with pytest.raises(TooSlow), limited(0.1):
        time.sleep(60)
    with pytest.raises(TooSlow), limited(0.5):
        while True:
            pass


EATING = "import time; eaten = b'x' * 2**31; time.sleep(20)"


@pytest.mark.parametrize(
    "script",
    [
        EATING,
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {EATING!r}])",
    ],
)
def test_eaten_memory_is_seen(script, run_script):
    with pytest.raises(AssertionError, match="GiB held"):
        run_script(script, memory=2**30)


@pytest.mark.slow
def test_memory_eaten_once_before_hides_nothing():
    for _ in range(2):
        with (
            pytest.raises(AssertionError, match="GiB more"),
            limited(growth=GIB),
        ):
            bytearray(2**31)[:: 2**12] = b"x" * 2**19


def test_a_busy_machine_has_more_time(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for load, seconds in ((0.1, 60), (2.0, 60), (5.0, 150)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0, 0))
        assert longest(30) == seconds


def test_what_a_command_leaves_is_read(run_script):
    outcome = run_script("import sys; print('out'); sys.exit('Error: said')")
    assert outcome == Outcome(1, "out\n", "Error: said\n")


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (1, "Error: `k` is no number.", "`k`"),
        (2, "Traceback (most recent call last):\nError: `k`", "`k`"),
        (2, "Error: `k` " + "k" * 2000, "`k`"),
        (2, "Error: `size` is no number.", "`k`"),
        (2, "", ""),
    ],
)
def test_other_endings_fail(code, error, message):
    with pytest.raises(AssertionError):
        check_outcome(Outcome(code, "", error), 2, message)


def test_one_case_in_ten_is_quick():
    cases = [Case(str(n), ("recipes",), quick=n == 5) for n in range(20)]
    quick = [one.id for one in table(cases) if not one.marks]
    assert quick == ["0", "5", "10"]
    with pytest.raises(AssertionError, match="{'a'}"):
        table([Case("a", ()), Case("a", ())])


def test_places_stand_in_for_their_names(capsys, monkeypatch, tmp_path):
    case = Case(
        "absent", ("evaluate", "<run>/no"), f"{tmp_path}/no", quick=True
    )
    case.check(capsys, monkeypatch, run=tmp_path)
