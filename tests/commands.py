"""Runs the command line inside the test process, as a shell would."""

import sys
from dataclasses import dataclass

from keras_dml import cli


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


def run_command(capsys, monkeypatch, *arguments) -> Outcome:
    """Calls `keras-dml` with arguments; everything but the shell is real."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["keras-dml", *map(str, arguments)])
    try:
        cli.main()
        code = 0
    except SystemExit as exit_:
        code = exit_.code or 0
    printed = capsys.readouterr()
    return Outcome(code, printed.out, printed.err)
