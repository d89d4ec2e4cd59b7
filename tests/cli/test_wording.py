import io
import logging

import pytest
from rich.console import Console

from keras_dml import console
from keras_dml.cli import app


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pass `resume=True`.", "Pass `--resume`."),
        ("Choose another `output`.", "Choose another `--output`."),
        ("`report=False`", "`--no-report`"),
        ("`recipe='triplet:default'`", "`--recipe triplet:default`"),
        ("`max_false_match_rate` is 2", "`--max-false-match-rate` is 2"),
        ("`format` is gif", "`--format` is gif"),
        # No option has these names, or an argument of a command has.
        ("`model.dim` and `margin`", "`model.dim` and `margin`"),
        ("`source` is absent", "`source` is absent"),
    ],
)
def test_arguments_become_options(text, expected):
    assert app._OptionNames().translate(text) == expected


def test_log_lines_are_translated_with_their_values():
    record = logging.LogRecord(
        "keras_dml", 20, "", 0, "%s: pass `resume=True`", ("runs/a",), None
    )
    assert app._OptionNames().filter(record)
    assert record.getMessage() == "runs/a: pass `--resume`"


def test_an_error_is_wrapped_between_words_on_a_terminal_only(
    monkeypatch, capsys
):
    said = " ".join(["`--loss`: the loss is unknown."] * 9)
    with pytest.raises(SystemExit, match="2"):
        app._fail(said, 2)
    assert capsys.readouterr().err == f"Error: {said}\n"
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(console, "console", screen)
    with pytest.raises(SystemExit, match="2"):
        app._fail(said, 2)
    lines = screen.file.getvalue().splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 80
    assert " ".join(map(str.strip, lines)) == f"Error: {said}"
