"""How the application ends."""

import io

import pytest
from rich.console import Console

from keras_dml import console
from keras_dml.cli import app


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
